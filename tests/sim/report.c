#include "report.h"

#include "reduce.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* A run in so many is made twice and compared with itself. */
enum { REPEAT_ONE_IN = 20, PLANT_SEEDS_MAX = 1000 };

void report_begin(struct report *report, const struct report_options *options)
{
    *report = (struct report){.options = *options};
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
        printf("reduced (");
        print_plan(&plan);
        printf("), the end of its trace:\n");
        print_end(attempt->text);
    }
    printf("repeat it with\n");
    replay_print(seed, &limits);
    fflush(stdout);
}

static void add(struct report *report, const struct plan *plan, const struct run_result *result)
{
    report->steps += result->steps;
    report->operations += result->operations;
    report->revisions += result->revisions;
    report->simulated_seconds += result->seconds;
    for (int i = 0; i < SWITCHES; i++)
        report->switched[i] += plan->on[i];
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

static void run_seed(struct report *report, uint64_t seed)
{
    struct attempt attempt;
    struct plan plan = plan_make(seed, &report->options.limits);
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
    if (fault != SWITCHES && !plan.on[fault])
        return false;
    attempt_run(&plan, false, &attempt);
    if (!attempt.failed || is_found_without(report, seed, fault))
        return false;
    printf("%-16s found by seed %llu: %.200s\n", plant_name(plant), (unsigned long long)seed,
           attempt.text);
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

void report_run(struct report *report)
{
    const struct report_options *options = &report->options;
    double begun = now_seconds();
    for (enum plant plant = PLANT_NONE + 1; options->plants && plant < PLANTS; plant++)
        if (options->only == PLANT_NONE || options->only == plant)
            find_plant(report, plant);
    for (uint64_t i = 0; i < options->seeds; i++) {
        if (options->seconds_max > 0 && now_seconds() - begun > options->seconds_max)
            break;
        run_seed(report, options->first + i);
    }
    report->seconds = now_seconds() - begun;
    printf("%llu runs, %llu failures, %.0f s; %llu operations, %llu revisions, %.0f simulated "
           "seconds, %llu steps\n",
           (unsigned long long)report->runs, (unsigned long long)report->failures, report->seconds,
           (unsigned long long)report->operations, (unsigned long long)report->revisions,
           report->simulated_seconds, (unsigned long long)report->steps);
}

bool report_failed(const struct report *report)
{
    return report->failures > 0;
}

/* -- JSON -- */

static void write_fact(FILE *file, const char *name, double value, const char *unit)
{
    fprintf(file, "    [\"%s\", %.0f, \"%s\"],\n", name, value, unit);
}

static void write_seeds(FILE *file, const struct report *report)
{
    write_fact(file, "seeds", (double)report->runs, "");
    write_fact(file, "seeds that were run twice, with the same trace", (double)report->repeated,
               "");
    write_fact(file, "requests of clients", (double)report->operations, "");
    write_fact(file, "revisions", (double)report->revisions, "");
    write_fact(file, "simulated time", report->simulated_seconds, "s");
    write_fact(file, "steps", (double)report->steps, "");
    for (int i = 0; i < SWITCHES; i++) {
        char name[64];
        snprintf(name, sizeof(name), "seeds with %s", switch_name((enum plan_switch)i));
        write_fact(file, name, (double)report->switched[i], "");
    }
}

static void write_plants(FILE *file, const struct report *report)
{
    for (enum plant plant = PLANT_NONE + 1; report->options.plants && plant < PLANTS; plant++) {
        char name[160];
        snprintf(name, sizeof(name), "planted: %s (%s): seeds until it was found",
                 plant_what(plant), plant_fault(plant));
        write_fact(file, name, (double)report->found_after[plant], "");
    }
}

/* Of the tree in which the program is run. */
static void read_commit(char text[static 64])
{
    FILE *pipe = popen("git rev-parse --short HEAD 2>/dev/null", "r");
    text[0] = 0;
    if (!pipe)
        return;
    if (!fgets(text, 64, pipe))
        text[0] = 0;
    pclose(pipe);
    text[strcspn(text, "\n")] = 0;
}

bool report_write(const struct report *report, const char *path)
{
    char date[32], commit[64];
    time_t now = time(NULL);
    strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
    read_commit(commit);
    FILE *file = fopen(path, "w");
    if (!file)
        return false;
    fprintf(file,
            "{\n  \"part\": \"sim\",\n  \"command\": \"build-test/vigil_sim%s --seeds=%llu\",\n"
            "  \"commit\": \"%s\",\n  \"date\": \"%s\",\n  \"seconds\": %.1f,\n"
            "  \"facts\": [\n",
            report->options.plants ? " --plants" : "", (unsigned long long)report->runs, commit,
            date, report->seconds);
    write_seeds(file, report);
    write_plants(file, report);
    fprintf(file,
            "    [\"seeds that failed\", %llu, \"\"]\n  ],\n  \"plots\": [],\n  \"rows\": []\n}\n",
            (unsigned long long)report->failures);
    return fclose(file) == 0;
}
