/*
 * Makes images of a disk after a power failure from a recording, and opens each:
 *
 *   power_images --log FILE --history FILE [--images N] [--seed N] [--only I] [--dir DIR]
 *                [--jobs N] [--base DIR] [--position P] [--keep DIR] [--keep-each N]
 *                [--none]
 *   power_images --history FILE --position P --open DIR
 *
 * The positions of the failures, and what each image has of the unsynced writes, follow from the
 * seed and the number of the image. --base is a directory with which the recording began; then the
 * history is older than the recording, and --position says how much of it must be there. --keep
 * leaves a copy of every Nth image in DIR/NUMBER-POSITION, unopened; --none drops all
 * unsynced writes. The last line on stdout is JSON; the exit status is 1 if an image is wrong.
 */
#include "base/xalloc.h"
#include "check.h"
#include "disk.h"

#include <errno.h>
#include <ftw.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FAULTS_SHOWN_MAX = 5, PATH_BYTES = 4096, SECONDS_MAX = 120 };

struct settings {
    const char *log, *history, *dir, *base, *keep, *open;
    uint64_t images, seed, only, jobs, position, keep_each;
    bool has_only;
    bool keeps_none;
};

/* Counted by all processes. */
struct totals {
    _Atomic uint64_t images, wrong, lost, due, revisions, compacted;
    _Atomic uint64_t writes, writes_lost, sectors, sectors_lost, names, names_lost, clean;
    _Atomic uint64_t styles[DISK_STYLES];
};

/* From the process that opens an image. */
struct verdict {
    bool done;
    enum status status;
    struct check_result result;
    struct error error;
};

static struct totals *totals;
static struct verdict *verdict;

static void *shared_memory(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        abort();
    return memory;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

static void remove_tree(const char *path)
{
    enum { OPEN_DIRS = 8 };
    nftw(path, remove_one, OPEN_DIRS, FTW_DEPTH | FTW_PHYS);
}

/* In a process of its own, because a store with a fault may abort. */
static void open_image(struct history *history, uint64_t position, const char *path)
{
    *verdict = (struct verdict){0};
    fflush(NULL);
    pid_t child = fork();
    if (child < 0)
        abort();
    if (child == 0) {
        alarm(SECONDS_MAX);
        verdict->status = check_dir(history, position, path, &verdict->result, &verdict->error);
        verdict->done = true;
        _exit(0);
    }
    int how;
    while (waitpid(child, &how, 0) < 0 && errno == EINTR)
        continue;
    if (!verdict->done)
        verdict->status = error_set(&verdict->error, ST_DAMAGED, "opening it ended with signal %d",
                                    WIFSIGNALED(how) ? WTERMSIG(how) : 0);
}

static void add_counts(const struct disk_counts *counts, enum disk_style style)
{
    atomic_fetch_add(&totals->writes, counts->writes);
    atomic_fetch_add(&totals->writes_lost, counts->writes_lost);
    atomic_fetch_add(&totals->sectors, counts->sectors);
    atomic_fetch_add(&totals->sectors_lost, counts->sectors_lost);
    atomic_fetch_add(&totals->names, counts->names);
    atomic_fetch_add(&totals->names_lost, counts->names_lost);
    atomic_fetch_add(&totals->clean, !counts->writes && !counts->names);
    atomic_fetch_add(&totals->styles[style], 1);
}

static void add_verdict(const struct settings *settings, uint64_t number, uint64_t position,
                        enum disk_style style)
{
    atomic_fetch_add(&totals->images, 1);
    atomic_fetch_add(&totals->due, (uint64_t)verdict->result.revision_due - 1);
    atomic_fetch_add(&totals->revisions, (uint64_t)verdict->result.revision);
    atomic_fetch_add(&totals->compacted, verdict->result.compact_revision > 0);
    if (verdict->status == ST_OK)
        return;
    atomic_fetch_add(&totals->lost, strstr(verdict->error.text, "was acknowledged") != NULL);
    if (atomic_fetch_add(&totals->wrong, 1) < FAULTS_SHOWN_MAX)
        printf("image %" PRIu64 " of seed %" PRIu64 ", position %" PRIu64 ", style %s: %s\n",
               number, settings->seed, position, disk_style_name(style), verdict->error.text);
}

struct image {
    uint64_t number, position;
};

static int compare_images(const void *left, const void *right)
{
    const struct image *a = left, *b = right;
    return a->position < b->position ? -1 : a->position > b->position;
}

static void random_of_image(const struct settings *settings, uint64_t number, struct random *random)
{
    random_init(random, settings->seed * 1000003 + number);
}

static void make_image(const struct settings *settings, struct disk *disk, struct history *history,
                       const struct image *image)
{
    struct random random;
    random_of_image(settings, image->number, &random);
    (void)random_u64(&random); /* made the position */
    enum disk_style style = (enum disk_style)random_below(&random, DISK_STYLES);
    if (settings->keeps_none)
        style = DISK_NONE;
    char path[PATH_BYTES];
    bool keeps = settings->keep && image->number % settings->keep_each == 0;
    uint64_t history_position = settings->base ? settings->position : image->position;
    if (keeps)
        snprintf(path, sizeof(path), "%s/%" PRIu64 "-%" PRIu64, settings->keep, image->number,
                 history_position);
    else
        snprintf(path, sizeof(path), "%s/%d", settings->dir, (int)getpid());
    struct disk_counts counts;
    struct error error;
    disk_play(disk, image->position);
    if (disk_image(disk, style, &random, path, &counts, &error) != ST_OK) {
        fprintf(stderr, "%s\n", error.text);
        abort();
    }
    if (keeps)
        return;
    open_image(history, history_position, path);
    add_counts(&counts, style);
    add_verdict(settings, image->number, image->position, style);
    remove_tree(path);
}

static bool is_of_job(const struct settings *settings, uint64_t number, uint64_t job)
{
    return !settings->has_only ? number % settings->jobs == job
                               : job == 0 && number == settings->only;
}

/* One of the processes: every jobs-th image, in the order of positions. */
static void run_job(const struct settings *settings, uint64_t job)
{
    struct disk *disk;
    struct history history;
    struct error error;
    if (disk_open(settings->log, settings->base, &disk, &error) != ST_OK ||
        history_load(&history, settings->history, &error) != ST_OK) {
        fprintf(stderr, "%s\n", error.text);
        abort();
    }
    struct image *images = xcalloc(settings->images, sizeof(*images));
    size_t count = 0;
    for (uint64_t number = 0; number < settings->images; number++) {
        struct random random;
        random_of_image(settings, number, &random);
        uint64_t position = random_u64(&random) % (disk_end(disk) + 1);
        if (is_of_job(settings, number, job))
            images[count++] = (struct image){number, position};
    }
    qsort(images, count, sizeof(*images), compare_images);
    verdict = shared_memory(sizeof(*verdict));
    for (size_t i = 0; i < count; i++)
        make_image(settings, disk, &history, &images[i]);
    free(images);
    disk_free(disk);
}

static bool run_jobs(const struct settings *settings)
{
    bool good = true;
    fflush(NULL);
    for (uint64_t job = 0; job < settings->jobs; job++) {
        pid_t child = fork();
        if (child < 0)
            abort();
        if (child == 0) {
            run_job(settings, job);
            fflush(NULL);
            _exit(0);
        }
    }
    for (int how; wait(&how) > 0;)
        good &= how == 0;
    return good;
}

static void write_totals(void)
{
    printf("{\"images\": %" PRIu64 ", \"wrong\": %" PRIu64 ", \"lost\": %" PRIu64
           ", \"due\": %" PRIu64 ", \"revisions\": %" PRIu64 ", \"compacted\": %" PRIu64
           ", \"clean\": %" PRIu64 ", \"writes\": %" PRIu64 ", \"writes_lost\": %" PRIu64
           ", \"sectors\": %" PRIu64 ", \"sectors_lost\": %" PRIu64 ", \"names\": %" PRIu64
           ", \"names_lost\": %" PRIu64 ", \"styles\": {",
           totals->images, totals->wrong, totals->lost, totals->due, totals->revisions,
           totals->compacted, totals->clean, totals->writes, totals->writes_lost, totals->sectors,
           totals->sectors_lost, totals->names, totals->names_lost);
    for (int i = 0; i < DISK_STYLES; i++)
        printf("%s\"%s\": %" PRIu64, i ? ", " : "", disk_style_name((enum disk_style)i),
               totals->styles[i]);
    printf("}}\n");
}

/* A directory that was left by a server: after a fault, without a loss of power. */
static int open_one(const struct settings *settings)
{
    struct history history;
    struct error error;
    if (history_load(&history, settings->history, &error) != ST_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    verdict = shared_memory(sizeof(*verdict));
    open_image(&history, settings->position, settings->open);
    add_verdict(settings, 0, settings->position, DISK_ALL);
    write_totals();
    return totals->wrong ? 1 : 0;
}

static uint64_t number(const char *text)
{
    return strtoull(text, NULL, 10);
}

static void read_option(struct settings *settings, int option)
{
    switch (option) {
    case 'l':
        settings->log = optarg;
        break;
    case 'h':
        settings->history = optarg;
        break;
    case 'd':
        settings->dir = optarg;
        break;
    case 'b':
        settings->base = optarg;
        break;
    case 'k':
        settings->keep = optarg;
        break;
    case 'n':
        settings->open = optarg;
        break;
    case 'i':
        settings->images = number(optarg);
        break;
    case 's':
        settings->seed = number(optarg);
        break;
    case 'j':
        settings->jobs = number(optarg);
        break;
    case 'p':
        settings->position = number(optarg);
        break;
    case 'e':
        settings->keep_each = number(optarg);
        break;
    case 'z':
        settings->keeps_none = true;
        break;
    case 'o':
        settings->only = number(optarg);
        settings->has_only = true;
        break;
    default:
        exit(2);
    }
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"log", 1, NULL, 'l'},       {"history", 1, NULL, 'h'}, {"dir", 1, NULL, 'd'},
        {"base", 1, NULL, 'b'},      {"keep", 1, NULL, 'k'},    {"images", 1, NULL, 'i'},
        {"seed", 1, NULL, 's'},      {"jobs", 1, NULL, 'j'},    {"position", 1, NULL, 'p'},
        {"keep-each", 1, NULL, 'e'}, {"only", 1, NULL, 'o'},    {"open", 1, NULL, 'n'},
        {"none", 0, NULL, 'z'},      {NULL, 0, NULL, 0},
    };
    struct settings settings = {
        .images = 1, .jobs = 1, .seed = 1, .keep_each = 1, .position = UINT64_MAX};
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;)
        read_option(&settings, option);
    totals = shared_memory(sizeof(*totals));
    if (settings.open)
        return open_one(&settings);
    char dir[] = "/dev/shm/vigil-power-XXXXXX";
    if (!settings.dir)
        settings.dir = mkdtemp(dir);
    if (!settings.dir || !settings.log || !settings.history)
        return 2;
    bool good = run_jobs(&settings);
    remove_tree(settings.dir);
    write_totals();
    return good && !totals->wrong ? 0 : 1;
}
