/* A process that writes a mirror is killed at random, and the next start is compared with a model.
 */
#include "engine/local/mirror/model_test.h"

#include <signal.h>
#include <sys/wait.h>

enum { ROUNDS = 25, STEPS_MAX = 100000, WAIT_STEPS = 100 };

static const struct engine_local_options options = {
    .segment_bytes_first = 16 << 10,
    .segment_bytes_max = 64 << 10,
    .checkpoint_bytes = 64 << 10,
    .is_mirror = true,
};

/* Reports after each step which revision has a record, and so must survive. */
static void write_until_killed(const char *dir, uint64_t seed, int to)
{
    bool in_state = seed % 4 == 0; /* it kills itself in the middle of the first state */
    struct fixture *f = fixture_new_in(dir, options);
    struct model m;
    static struct model_step step;
    model_init(&m, seed);
    for (int i = 0; i < STEPS_MAX; i++) {
        step_make(&m, &step);
        if (in_state && step.batch_count > 1) {
            assert_int_equal(apply_batch(f, step.batches[0]), ST_OK);
            kill(getpid(), SIGKILL);
        }
        run_step(f, &m, &step);
        if (write(to, &m.recorded, sizeof(m.recorded)) != sizeof(m.recorded))
            break;
    }
    _exit(1);
}

/* Kills the process after some steps; returns the last revision that it has reported. */
static int64_t run_and_kill(const char *dir, uint64_t seed)
{
    int ends[2];
    struct random random;
    random_init(&random, seed + 1000);
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        write_until_killed(dir, seed, ends[1]);
    close(ends[1]);
    int64_t reported = 1;
    for (uint64_t left = 1 + random_below(&random, WAIT_STEPS); left; left--)
        if (read(ends[0], &reported, sizeof(reported)) != sizeof(reported))
            break;
    usleep((useconds_t)random_below(&random, 2000)); /* somewhere in a later step */
    assert_int_equal(kill(child, SIGKILL), 0);
    int ended;
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_true(WIFSIGNALED(ended) && WTERMSIG(ended) == SIGKILL);
    for (int64_t next; read(ends[0], &next, sizeof(next)) == sizeof(next);)
        reported = next;
    close(ends[0]);
    return reported;
}

/* Repeats the run up to the revision. False: the compact revision is not one of the run's. */
static bool repeat_until(struct model *m, int64_t revision, int64_t compact_revision)
{
    static struct model_step step;
    int64_t loaded = 0;
    bool compacted = compact_revision == m->compact_revision;
    while (m->revision <= revision) {
        step_make(m, &step);
        compacted |= m->compact_revision == compact_revision;
        if (m->loaded <= revision)
            loaded = m->loaded;
    }
    m->loaded = loaded;
    while (m->count && m->versions[m->count - 1].mod_revision > revision)
        m->count--;
    m->revision = revision;
    return compacted;
}

static void compare(struct fixture *f, uint64_t seed, int64_t reported)
{
    struct model m;
    int64_t revision = local_mirror_revision(f->engine);
    int64_t compact_revision = local_mirror_compact_revision(f->engine);
    assert_true(revision >= reported);
    model_init(&m, seed);
    assert_true(repeat_until(&m, revision, compact_revision));
    int64_t oldest = compact_revision > 1 ? compact_revision : 1;
    assert_state(f, &m, revision);
    assert_state(f, &m, oldest);
    assert_state(f, &m, random_between(&m.random, oldest, revision));
    assert_history(f, &m, oldest);
    model_fini(&m);
}

/* A state of which only a part is there must be the one after the reported revision. */
static void assert_in_state(uint64_t seed, int64_t reported)
{
    struct model m;
    static struct model_step step;
    model_init(&m, seed);
    while (m.loaded <= reported)
        step_make(&m, &step);
    model_fini(&m);
}

/* NULL: only a part of a state is there. */
static struct fixture *open_killed(const char *dir)
{
    struct fixture *f = fixture = calloc(1, sizeof(*f));
    assert_non_null(f);
    snprintf(f->dir, sizeof(f->dir), "%s", dir);
    struct engine_local_options again = options;
    struct error error = {0};
    again.data_dir = f->dir;
    again.checks_at_close = true;
    if (engine_local_open(&again, &f->engine, &error) != ST_OK) {
        if (!strstr(error.text, "part of the state"))
            fail_msg("%s", error.text);
        free(f);
        return NULL;
    }
    arena_init(&f->arena, NULL, 0, SIZE_MAX);
    assert_int_equal(loop_new(clock_system(), &f->loop), ST_OK);
    assert_int_equal(engine_shard_new(f->engine, f->loop, &f->shard), ST_OK);
    return f;
}

static void a_killed_process_loses_nothing_it_has_reported(void **state)
{
    (void)state;
    int opened = 0;
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        char dir[TEMP_DIR_BYTES];
        temp_dir_make_fast("engine", dir);
        int64_t reported = run_and_kill(dir, seed);
        struct fixture *f = open_killed(dir);
        if (f) {
            compare(f, seed, reported);
            fixture_close(f);
            fixture_open(f, options); /* now from a checkpoint of what was replayed */
            compare(f, seed, reported);
            fixture_free((void *[]){f});
            opened++;
        } else {
            assert_in_state(seed, reported);
            temp_dir_remove(dir);
        }
    }
    assert_in_range(opened, ROUNDS / 2, ROUNDS - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_killed_process_loses_nothing_it_has_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
