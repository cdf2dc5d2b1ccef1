/*
 * vigil_sim: the whole server in a simulation, from a seed. See docs/simulation.md.
 *
 *     vigil_sim --seeds=500              runs the seeds 1 to 500, each in a process of its own, as
 *                                        many at a time as there are cores
 *     vigil_sim --seed=7 --trace         runs one, and prints what happens
 *     vigil_sim --plants --seeds=0       how many seeds find each planted bug
 */
#include "base/log/log.h"
#include "plants.h"
#include "reduce.h"
#include "report.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct arguments {
    uint64_t first, seeds;
    bool one, trace, plants, reduces;
    unsigned jobs;
    enum plant only; /* look for this one; PLANT_NONE: for all */
    const char *report;
    double seconds;
    struct plan_limits limits;
    bool with[SWITCHES]; /* only seeds that have all of these */
};

static const char usage[] =
    "usage: vigil_sim [--seeds=N] [--first=N] [--with=SWITCH,…] [--seconds=N] [--jobs=N]\n"
    "                 [--plants[=NAME]] [--no-reduction] [--report=FILE]\n"
    "       vigil_sim --seed=N [--trace] [--without=SWITCH,…] [--operations=N] [--clients=N]\n"
    "                 [--plant=NAME]\n";

_Noreturn static void refuse(const char *what)
{
    fprintf(stderr, "vigil_sim: %s\n%s", what, usage);
    exit(2);
}

static void take_switches(bool switches[SWITCHES], const char *list)
{
    while (*list) {
        size_t len = strcspn(list, ",");
        enum plan_switch which = switch_named(list, len);
        if (which == SWITCHES)
            refuse("there is no such switch");
        switches[which] = true;
        list += len + (list[len] == ',');
    }
}

/* False: the option does not take a number. */
static bool take_number(struct arguments *a, int option)
{
    uint64_t number = optarg ? strtoull(optarg, NULL, 10) : 0;
    switch (option) {
    case 'n':
        a->seeds = number;
        return true;
    case 's':
        a->one = true;
        a->first = number;
        return true;
    case 'f':
        a->first = number;
        return true;
    case 'o':
        a->limits.operations = (unsigned)number;
        return true;
    case 'c':
        a->limits.clients = (unsigned)number;
        return true;
    case 'j':
        a->jobs = (unsigned)number;
        return true;
    case 'S':
        a->seconds = (double)number;
        return true;
    default:
        return false;
    }
}

static void take_other(struct arguments *a, int option)
{
    switch (option) {
    case 't':
        a->trace = true;
        break;
    case 'w':
        take_switches(a->limits.off, optarg);
        break;
    case 'W':
        take_switches(a->with, optarg);
        break;
    case 'p':
        plant_now = plant_named(optarg);
        if (plant_now == PLANTS)
            refuse("there is no such planted bug");
        break;
    case 'P':
        a->plants = true;
        a->only = optarg ? plant_named(optarg) : PLANT_NONE;
        break;
    case 'R':
        a->reduces = false;
        break;
    case 'r':
        a->report = optarg;
        break;
    default:
        refuse("unknown option");
    }
}

static struct arguments parse(int argc, char **argv)
{
    static const struct option options[] = {
        {"seeds", required_argument, NULL, 'n'},
        {"first", required_argument, NULL, 'f'},
        {"seed", required_argument, NULL, 's'},
        {"trace", no_argument, NULL, 't'},
        {"without", required_argument, NULL, 'w'},
        {"operations", required_argument, NULL, 'o'},
        {"with", required_argument, NULL, 'W'},
        {"plant", required_argument, NULL, 'p'},
        {"plants", optional_argument, NULL, 'P'},
        {"seconds", required_argument, NULL, 'S'},
        {"report", required_argument, NULL, 'r'},
        {"no-reduction", no_argument, NULL, 'R'},
        {"clients", required_argument, NULL, 'c'},
        {"jobs", required_argument, NULL, 'j'},
        {NULL, 0, NULL, 0},
    };
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    struct arguments a = {
        .first = 1, .seeds = 500, .reduces = true, .jobs = cores > 0 ? (unsigned)cores : 1};
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;)
        if (!take_number(&a, c))
            take_other(&a, c);
    if (!a.jobs)
        refuse("there must be a process");
    return a;
}

int main(int argc, char **argv)
{
    struct arguments a = parse(argc, argv);
    log_set_level(LOG_FATAL);
    if (a.one) {
        struct plan plan = plan_make(a.first, &a.limits);
        struct run_result result = run_plan(&plan, a.trace);
        run_print(&plan, &result);
        return 0;
    }
    struct report report;
    struct report_options options = {
        .first = a.first,
        .seeds = a.seeds,
        .plants = a.plants,
        .only = a.only,
        .seconds_max = a.seconds,
        .reduces = a.reduces,
        .jobs = a.jobs,
        .limits = a.limits,
    };
    memcpy(options.with, a.with, sizeof(a.with));
    report_begin(&report, &options);
    report_run(&report);
    if (a.report && !report_write(&report, a.report))
        refuse("the report cannot be written");
    return report_failed(&report) ? 1 : 0;
}
