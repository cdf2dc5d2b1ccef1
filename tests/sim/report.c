#include "report.h"

#include "reduce.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A run in so many is made twice and compared with itself. */
enum { REPEAT_ONE_IN = 20, PLANT_SEEDS_MAX = 1000 };

/* The commit of the tree in which the program is run, read at the beginning, since that is what was
 * compiled. */
static void read_commit(char commit[static REPORT_COMMIT_BYTES])
{
    FILE *pipe = popen("tools/commit-name 2>/dev/null", "r");
    if (!pipe)
        return;
    if (!fgets(commit, REPORT_COMMIT_BYTES, pipe))
        commit[0] = 0;
    pclose(pipe);
    commit[strcspn(commit, "\n")] = 0;
}

void report_begin(struct report *report, const struct report_options *options)
{
    *report = (struct report){.options = *options};
    read_commit(report->commit);
}

static double now_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

enum { LINES_MAX = 40 };

static void print_lines(const char *from)
{
    int lines = 0;
    for (size_t len; *from && lines++ < LINES_MAX; from += len + (from[len] == '\n')) {
        len = strcspn(from, "\n");
        printf("    %.*s\n", (int)len, from);
    }
}

/* Where the sanitizer's report begins, or the last lines. */
static void print_end(const char *text)
{
    const char *from = strstr(text, "ERROR: "), *end = text + strlen(text);
    for (int lines = 0; !from && lines < LINES_MAX; lines++)
        while (end > text && *--end != '\n')
            ;
    print_lines(from ? from : end > text ? end + 1 : text);
}

static void print_switches(const struct plan *plan, int from, int to)
{
    const char *separator = "";
    for (int i = from; i < to; i++) {
        if (plan->on[i])
            printf("%s%s", separator, switch_name((enum plan_switch)i));
        separator = plan->on[i] ? ", " : separator;
    }
    printf("%s", *separator ? "" : "none");
}

static void print_plan(const struct plan *plan)
{
    printf("faults: ");
    print_switches(plan, 0, SWITCH_LEASES);
    printf("; requests besides the usual ones: ");
    print_switches(plan, SWITCH_LEASES, SWITCHES);
    printf("; %u clients, %u requests of each", plan->clients, plan->operations);
}

static void print_failure(const struct report *report, uint64_t seed, struct attempt *attempt)
{
    struct plan_limits limits = report->options.limits;
    struct plan plan = plan_make(seed, &limits);
    printf("seed %llu fails (", (unsigned long long)seed);
    print_plan(&plan);
    printf("):\n");
    print_end(attempt->text);
    if (report->options.reduces) {
        reduce(seed, &limits, attempt);
        plan = plan_make(seed, &limits);
        attempt_run(&plan, true, attempt);
        printf("seed %llu reduced (", (unsigned long long)seed);
        print_plan(&plan);
        printf("), the end of its trace:\n");
        print_end(attempt->text);
    }
    printf("repeat it with\n");
    replay_print(seed, &limits);
    fflush(stdout);
}

static void add_coverage(struct coverage_counts *to, const struct coverage_counts *from)
{
    for (int i = 0; i < COVERAGES; i++)
        for (int front = 0; front < 2; front++)
            to->of[i][front] += from->of[i][front];
}

static void add(struct report *report, const struct plan *plan, const struct run_result *result)
{
    report->steps += result->steps;
    report->operations += result->operations;
    report->revisions += result->revisions;
    report->simulated_seconds += result->seconds;
    for (int i = 0; i < SWITCHES; i++)
        report->switched[i] += plan->on[i];
    add_coverage(&report->coverage, &result->coverage);
}

static void repeat(struct report *report, const struct plan *plan, const struct run_result *result)
{
    struct attempt again;
    attempt_run(plan, false, &again);
    if (!again.failed && again.result.hash == result->hash) {
        report->repeated++;
        return;
    }
    printf("seed %llu is not repeatable\n", (unsigned long long)plan->seed);
    report->failures++;
}

static bool has_switches(const struct plan *plan, const bool switches[SWITCHES])
{
    bool has = true;
    for (int i = 0; i < SWITCHES; i++)
        has &= plan->on[i] || !switches[i];
    return has;
}

static void run_seed(struct report *report, uint64_t seed)
{
    struct attempt attempt;
    struct plan plan = plan_make(seed, &report->options.limits);
    if (!has_switches(&plan, report->options.with))
        return;
    attempt_run(&plan, false, &attempt);
    report->runs++;
    if (attempt.failed) {
        report->failures++;
        print_failure(report, seed, &attempt);
        return;
    }
    add(report, &plan, &attempt.result);
    if (seed % REPEAT_ONE_IN == 0)
        repeat(report, &plan, &attempt.result);
}

/* Whether the seed fails also without the fault that the planted bug is for: then it was found by
 * another one. */
static bool is_found_without(const struct report *report, uint64_t seed, enum plan_switch fault)
{
    struct attempt attempt;
    struct plan_limits limits = report->options.limits;
    if (fault == SWITCHES)
        return false;
    limits.off[fault] = true;
    struct plan plan = plan_make(seed, &limits);
    attempt_run(&plan, false, &attempt);
    return attempt.failed;
}

static bool finds(const struct report *report, uint64_t seed, enum plant plant)
{
    struct attempt attempt;
    struct plan plan = plan_make(seed, &report->options.limits);
    enum plan_switch fault = plant_switch(plant);
    if ((fault != SWITCHES && !plan.on[fault]) ||
        (plant_is_of_front(plant) && !plan.on[SWITCH_FRONT]) ||
        (plant_is_of_tier(plant) && !plan.on[SWITCH_TIER]))
        return false;
    attempt_run(&plan, false, &attempt);
    if (!attempt.failed || is_found_without(report, seed, fault))
        return false;
    printf("%-16s found by seed %llu: %.*s\n", plant_name(plant), (unsigned long long)seed,
           (int)strcspn(attempt.text, "\n"), attempt.text);
    return true;
}

static void find_plant(struct report *report, enum plant plant)
{
    plant_now = plant;
    for (uint64_t i = 0; i < PLANT_SEEDS_MAX && !report->found_after[plant]; i++)
        report->found_after[plant] = finds(report, i + 1, plant) ? i + 1 : 0;
    if (!report->found_after[plant]) {
        printf("%-16s not found\n", plant_name(plant));
        report->failures++;
    }
    fflush(stdout);
    plant_now = PLANT_NONE;
}

/* -- Work for several processes -- */

/* In memory that they share. The tasks are the planted bugs, and then the seeds. */
struct work {
    _Atomic uint64_t next; /* task that no process has taken yet */
    double begun;
    struct report reports[];
};

static bool is_wanted(const struct report_options *options, enum plant plant)
{
    return options->plants && (options->only == PLANT_NONE || options->only == plant);
}

static void do_task(struct report *report, uint64_t task)
{
    enum plant plant = (enum plant)(task + PLANT_NONE + 1);
    if (plant >= PLANTS)
        run_seed(report, report->options.first + task - (PLANTS - PLANT_NONE - 1));
    else if (is_wanted(&report->options, plant))
        find_plant(report, plant);
    fflush(stdout);
}

static void take_tasks(struct work *work, struct report *report)
{
    const struct report_options *options = &report->options;
    uint64_t tasks = options->seeds + PLANTS - PLANT_NONE - 1;
    for (uint64_t task; (task = atomic_fetch_add(&work->next, 1)) < tasks;) {
        if (options->seconds_max > 0 && now_seconds() - work->begun > options->seconds_max)
            break;
        do_task(report, task);
    }
}

static pid_t start_process(struct work *work, struct report *report)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid < 0)
        abort();
    if (pid > 0)
        return pid;
    take_tasks(work, report);
    fflush(stdout);
    _exit(0);
}

static void merge(struct report *report, const struct report *part)
{
    report->runs += part->runs;
    report->failures += part->failures;
    report->repeated += part->repeated;
    report->steps += part->steps;
    report->operations += part->operations;
    report->revisions += part->revisions;
    report->simulated_seconds += part->simulated_seconds;
    for (int i = 0; i < SWITCHES; i++)
        report->switched[i] += part->switched[i];
    for (int i = 0; i < PLANTS; i++)
        report->found_after[i] += part->found_after[i]; /* one process has looked for it */
    add_coverage(&report->coverage, &part->coverage);
}

static double cpu_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_CHILDREN, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

void report_run(struct report *report)
{
    enum { JOBS_MAX = 256 };
    unsigned jobs = report->options.jobs < JOBS_MAX ? report->options.jobs : JOBS_MAX;
    size_t bytes = sizeof(struct work) + jobs * sizeof(struct report);
    pid_t pids[JOBS_MAX];
    struct work *work =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (work == MAP_FAILED)
        abort();
    work->begun = now_seconds();
    for (unsigned i = 0; i < jobs; i++) {
        work->reports[i].options = report->options;
        pids[i] = start_process(work, &work->reports[i]);
    }
    for (unsigned i = 0; i < jobs; i++) {
        int status = 0;
        waitpid(pids[i], &status, 0);
        report->failures += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
        merge(report, &work->reports[i]);
    }
    report->seconds = now_seconds() - work->begun;
    report->cpu_seconds = cpu_seconds();
    munmap(work, bytes);
    printf("%llu runs, %llu failures, %.0f s (%.0f s of CPU time); %llu operations, %llu "
           "revisions, %.0f simulated seconds, %llu steps\n",
           (unsigned long long)report->runs, (unsigned long long)report->failures, report->seconds,
           report->cpu_seconds, (unsigned long long)report->operations,
           (unsigned long long)report->revisions, report->simulated_seconds,
           (unsigned long long)report->steps);
}

bool report_failed(const struct report *report)
{
    return report->failures > 0;
}

/* -- JSON -- */

static void write_fact(FILE *file, const char *name, double value, const char *unit,
                       const char *separator)
{
    fprintf(file, "    [\"%s\", %.0f, \"%s\"]%s\n", name, value, unit, separator);
}

static void write_facts(FILE *file, const struct report *report)
{
    write_fact(file, "seeds", (double)report->runs, "", ",");
    write_fact(file, "seeds that were run twice, with the same trace", (double)report->repeated, "",
               ",");
    write_fact(file, "requests of the first eight kinds below", (double)report->operations, "",
               ",");
    write_fact(file, "revisions", (double)report->revisions, "", ",");
    write_fact(file, "simulated time", report->simulated_seconds, "s", ",");
    write_fact(file, "steps", (double)report->steps, "", ",");
    write_fact(file, "CPU time", report->cpu_seconds, "s", "");
}

static void begin_table(FILE *file, const char *title, const char *columns)
{
    fprintf(file, "    {\"title\": \"%s\", \"columns\": [%s], \"rows\": [", title, columns);
}

static void write_switches(FILE *file, const struct report *report)
{
    begin_table(file, "What the seeds have", "\"seeds with\", \"number\"");
    for (enum plan_switch i = 0; i < SWITCHES; i++)
        fprintf(file, "%s\n      [\"%s\", %llu]", i ? "," : "", switch_text(i),
                (unsigned long long)report->switched[i]);
    fprintf(file, "]},\n");
}

/* A table of everything from first to before end. */
static void write_coverage(FILE *file, const struct report *report, enum coverage first,
                           enum coverage end)
{
    for (enum coverage what = first; what < end; what++) {
        const uint64_t *counts = report->coverage.of[what];
        fprintf(file, "%s\n      [\"%s\", %llu, %llu]", what > first ? "," : "",
                coverage_name(what), (unsigned long long)(counts[0] + counts[1]),
                (unsigned long long)counts[1]);
    }
    fprintf(file, "]},\n");
}

static void write_plants(FILE *file, const struct report *report)
{
    const char *separator = "";
    begin_table(file, "Planted bugs",
                "\"planted bug\", \"fault that shows it\", \"seeds until it was found\"");
    for (enum plant plant = PLANT_NONE + 1; plant < PLANTS; plant++) {
        if (!is_wanted(&report->options, plant))
            continue;
        fprintf(file, "%s\n      [\"%s\", \"%s\", %llu]", separator, plant_what(plant),
                plant_fault(plant), (unsigned long long)report->found_after[plant]);
        separator = ",";
    }
    fprintf(file, "]}\n");
}

static void write_tables(FILE *file, const struct report *report)
{
    write_switches(file, report);
    begin_table(file, "Requests and their results",
                "\"request\", \"in all\", \"in seeds with a server in front\"");
    write_coverage(file, report, 0, COVERAGE_CUT);
    begin_table(file, "Faults of a server", "\"fault\", \"in all\", \"of the server in front\"");
    write_coverage(file, report, COVERAGE_CUT, COVERAGE_BREAK);
    begin_table(file, "Faults of connections, threads and clocks",
                "\"fault\", \"in all\", \"in seeds with a server in front\"");
    write_coverage(file, report, COVERAGE_BREAK, COVERAGES);
    write_plants(file, report);
}

static const char *met(bool is_met)
{
    return is_met ? "true" : "false";
}

/* What the project aims at, however few seeds this run has. */
static void write_rows(FILE *file, const struct report *report)
{
    enum { SEEDS = 10000, FIND_SEEDS = 1000 };
    unsigned planted = 0, found = 0;
    for (enum plant plant = PLANT_NONE + 1; plant < PLANTS; plant++) {
        if (!is_wanted(&report->options, plant))
            continue;
        planted++;
        found += report->found_after[plant] && report->found_after[plant] <= FIND_SEEDS;
    }
    fprintf(
        file,
        "  \"rows\": [\n    {\"row\": \"seeds\", \"value\": %llu, \"goal\": %d, \"met\": %s},\n",
        (unsigned long long)report->runs, SEEDS, met(report->runs >= SEEDS));
    if (planted)
        fprintf(file,
                "    {\"row\": \"planted bugs found within %d seeds\", \"value\": %u, "
                "\"goal\": %u, \"met\": %s},\n",
                FIND_SEEDS, found, planted, met(found == planted));
    fprintf(
        file,
        "    {\"row\": \"seeds that failed\", \"value\": %llu, \"goal\": 0, \"met\": %s}\n  ]\n",
        (unsigned long long)report->failures, met(report->failures == 0));
}

bool report_write(const struct report *report, const char *path)
{
    char date[32];
    time_t now = time(NULL);
    strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
    FILE *file = fopen(path, "w");
    if (!file)
        return false;
    fprintf(file,
            "{\n  \"part\": \"sim\",\n  \"command\": \"build-test/vigil_sim%s --seeds=%llu\",\n"
            "  \"commit\": \"%s\",\n  \"date\": \"%s\",\n  \"seconds\": %.1f,\n"
            "  \"facts\": [\n",
            report->options.plants ? " --plants" : "", (unsigned long long)report->runs,
            report->commit, date, report->seconds);
    write_facts(file, report);
    fprintf(file, "  ],\n  \"tables\": [\n");
    write_tables(file, report);
    fprintf(file, "  ],\n  \"plots\": [],\n");
    write_rows(file, report);
    fprintf(file, "}\n");
    return fclose(file) == 0;
}
