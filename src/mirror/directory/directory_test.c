/* The directory of a mirror: what of it survives a start. */
#include "mirror/directory/directory.h"

#include "base/crc32c.h"
#include "base/temp_dir_test.h"
#include "engine/local/local.h"
#include "engine/local/mirror/mirror_store.h"
#include "mirror/directory/mirror_file.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { CLUSTER = 0x1234 };

struct fixture {
    char dir[TEMP_DIR_BYTES];
    struct mirror_options options;
    struct mirror_directory mirror;
    char warning[1024]; /* the last one */
};

static void on_warning(void *ctx, const char *text)
{
    struct fixture *f = ctx;
    snprintf(f->warning, sizeof(f->warning), "%s", text);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    temp_dir_make_fast("mirror", f->dir);
    f->options.mirror = (struct engine_local_options){
        .data_dir = f->dir,
        .segment_bytes_first = 64 << 10,
        .on_warning = on_warning,
        .ctx = f,
    };
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    temp_dir_remove(f->dir);
    free(f);
    return 0;
}

static void open_mirror(struct fixture *f)
{
    struct error error = {0};
    f->warning[0] = 0;
    if (mirror_directory_open(&f->options, &f->mirror, &error) != ST_OK)
        fail_msg("%s", error.text);
}

static void close_mirror(struct fixture *f)
{
    mirror_directory_close(&f->mirror, &f->options);
}

static void identify(struct fixture *f)
{
    struct error error = {0};
    assert_int_equal(mirror_directory_identify(&f->mirror, &f->options, CLUSTER, &error), ST_OK);
}

/* -- Content -- */

struct applying {
    struct mirror_batch batch; /* first */
    _Atomic bool done;
};

static void applying_done(struct mirror_batch *batch, enum status status)
{
    assert_int_equal(status, ST_OK);
    atomic_store(&CONTAINER_OF(batch, struct applying, batch)->done, true);
}

static void apply(struct fixture *f, struct mirror_batch batch)
{
    struct applying applying = {.batch = batch};
    applying.batch.done = applying_done;
    local_mirror_apply(f->mirror.engine, &applying.batch);
    while (!atomic_load(&applying.done))
        usleep(100);
}

static void put(struct fixture *f, int64_t revision, size_t value_bytes)
{
    char *value = calloc(1, value_bytes + 1);
    struct imported_change change = {
        .kv = {.key = SLICE_LITERAL("k"),
               .value = slice_of(value, value_bytes),
               .create_revision = revision,
               .version = 1},
    };
    struct mirror_revision one = {.revision = revision, .changes = &change, .count = 1};
    apply(f, (struct mirror_batch){.revisions = &one, .count = 1});
    free(value);
}

/* A mirror that has revision 10, and was stopped cleanly. */
static void fill(struct fixture *f)
{
    open_mirror(f);
    identify(f);
    put(f, 10, 1);
    close_mirror(f);
}

static void assert_warm(struct fixture *f)
{
    open_mirror(f);
    assert_string_equal(f->warning, "");
    assert_true(f->mirror.is_warm);
    assert_int_equal(f->mirror.cluster_id, CLUSTER);
    assert_int_equal(local_mirror_revision(f->mirror.engine), 10);
    close_mirror(f);
}

/* It is thrown away, with a warning that says why, and can be filled again. */
static void assert_thrown_away(struct fixture *f, const char *why)
{
    open_mirror(f);
    if (!strstr(f->warning, why))
        fail_msg("\"%s\" does not say \"%s\"", f->warning, why);
    assert_false(f->mirror.is_warm);
    assert_int_equal(f->mirror.cluster_id, 0);
    assert_int_equal(local_mirror_revision(f->mirror.engine), 1);
    close_mirror(f);
    fill(f);
    assert_warm(f);
}

/* Changes the file as a start in another boot, or after a crash, would find it. */
static void change_file(struct fixture *f, const char *boot, bool is_clean)
{
    struct mirror_file file;
    assert_int_equal(mirror_file_read(fs_posix(), f->dir, &file), ST_OK);
    if (boot)
        snprintf(file.boot, sizeof(file.boot), "%s", boot);
    file.is_clean = is_clean;
    assert_int_equal(mirror_file_write(fs_posix(), f->dir, &file), ST_OK);
    mirror_file_fini(&file);
}

static void path_of(const struct fixture *f, const char *name, char path[TEMP_DIR_BYTES + 100])
{
    snprintf(path, TEMP_DIR_BYTES + 100, "%s/%s", f->dir, name);
}

static bool exists(const struct fixture *f, const char *name)
{
    char path[TEMP_DIR_BYTES + 100];
    path_of(f, name, path);
    return access(path, F_OK) == 0;
}

static void write_at(const struct fixture *f, const char *name, off_t offset, const char *text)
{
    char path[TEMP_DIR_BYTES + 100];
    path_of(f, name, path);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, text, strlen(text), offset), strlen(text));
    close(fd);
}

/* -- What survives -- */

static void a_new_mirror_is_empty_and_cold(void **state)
{
    struct fixture *f = *state;
    open_mirror(f);
    assert_string_equal(f->warning, "");
    assert_false(f->mirror.is_warm);
    assert_int_equal(f->mirror.cluster_id, 0);
    close_mirror(f);
    open_mirror(f); /* it was not identified, so there is nothing to throw away */
    assert_string_equal(f->warning, "");
    close_mirror(f);
}

static void content_survives_a_clean_stop(void **state)
{
    struct fixture *f = *state;
    fill(f);
    change_file(f, "another boot", true);
    assert_warm(f);
    assert_warm(f);
}

static void content_survives_a_crash_of_the_process(void **state)
{
    struct fixture *f = *state;
    pid_t child = fork();
    if (child == 0) {
        open_mirror(f);
        identify(f);
        put(f, 10, 1);
        kill(getpid(), SIGKILL);
    }
    int ended;
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_true(WIFSIGNALED(ended));
    assert_warm(f);
}

static void content_does_not_survive_a_crash_of_the_machine(void **state)
{
    struct fixture *f = *state;
    fill(f);
    change_file(f, "another boot", false);
    assert_thrown_away(f, "machine stopped");
    change_file(f, "", false); /* the boot is unknown */
    assert_thrown_away(f, "machine stopped");
}

static void content_of_other_prefixes_is_thrown_away(void **state)
{
    struct fixture *f = *state;
    struct slice prefixes[] = {SLICE_LITERAL("/a"), SLICE_LITERAL("/b\n")};
    struct slice turned[] = {prefixes[1], prefixes[0]};
    fill(f);
    f->options.prefixes = prefixes;
    f->options.prefix_count = 1;
    assert_thrown_away(f, "prefixes");
    f->options.prefix_count = 2;
    assert_thrown_away(f, "prefixes");
    f->options.prefixes = turned;
    assert_warm(f);
    f->options.prefix_count = 0;
    assert_thrown_away(f, "prefixes");
}

static void a_damaged_file_does_not_prevent_the_start(void **state)
{
    struct fixture *f = *state;
    fill(f);
    write_at(f, "MIRROR", 40, "?");
    assert_thrown_away(f, "MIRROR");
    write_at(f, "MIRROR", 0, "x");
    assert_thrown_away(f, "MIRROR");
    char path[TEMP_DIR_BYTES + 100];
    path_of(f, "MIRROR", path);
    assert_int_equal(truncate(path, 10), 0);
    assert_thrown_away(f, "MIRROR");
    assert_int_equal(truncate(path, MIRROR_FILE_BYTES_MAX + 1), 0);
    assert_thrown_away(f, "MIRROR");
}

static void damaged_content_does_not_prevent_the_start(void **state)
{
    struct fixture *f = *state;
    fill(f);
    write_at(f, "mirror/FORMAT", 0, "x");
    assert_thrown_away(f, "format");
    write_at(f, "mirror/meta/data.mdb", 0, "nonsense nonsense nonsense nonsense nonsense");
    assert_thrown_away(f, "meta");
    /* A damaged head of a segment is made again from its copy, which is at the end of the file. */
    const char *segment = "mirror/log/0000000000000001.seg";
    char path[TEMP_DIR_BYTES + 100];
    struct stat found;
    path_of(f, segment, path);
    write_at(f, segment, 0, "nonsense");
    open_mirror(f);
    assert_non_null(strstr(f->warning, "restored from its second copy"));
    assert_true(f->mirror.is_warm);
    close_mirror(f);
    assert_int_equal(stat(path, &found), 0);
    write_at(f, segment, 0, "nonsense");
    write_at(f, segment, found.st_size - 512, "nonsense");
    assert_thrown_away(f, "log");
}

static void a_part_of_a_state_is_thrown_away(void **state)
{
    struct fixture *f = *state;
    fill(f);
    open_mirror(f);
    char *value = calloc(1, 2 << 20); /* longer than what is written at once */
    struct imported_change change = {.kv = {.key = SLICE_LITERAL("k"),
                                            .value = slice_of(value, 2 << 20),
                                            .create_revision = 20,
                                            .version = 1}};
    struct mirror_revision one = {.revision = 20, .changes = &change, .count = 1};
    apply(f, (struct mirror_batch){.revisions = &one, .count = 1, .compact = 30, .is_part = true});
    free(value);
    close_mirror(f);
    assert_thrown_away(f, "part of the state");
}

/* -- Discarding -- */

static void discarded_revisions_stay_void_until_the_cluster_is_past_them(void **state)
{
    struct fixture *f = *state;
    struct error error = {0};
    fill(f);
    assert_int_equal(mirror_directory_discard(&f->options, 500, &error), ST_OK);
    assert_false(exists(f, "mirror"));
    assert_false(exists(f, "mirror.old"));
    open_mirror(f);
    assert_string_equal(f->warning, "");
    assert_false(f->mirror.is_warm);
    assert_int_equal(f->mirror.void_until, 500);
    identify(f);
    put(f, 100, 1);
    close_mirror(f);
    assert_int_equal(mirror_directory_discard(&f->options, 300, &error), ST_OK); /* both are void */
    open_mirror(f);
    assert_int_equal(f->mirror.void_until, 500);
    identify(f);
    put(f, 500, 1);
    close_mirror(f);
    open_mirror(f);
    assert_int_equal(f->mirror.void_until, 0);
    close_mirror(f);
}

static void raise_term(struct fixture *f, uint64_t term)
{
    struct error error = {0};
    assert_int_equal(mirror_directory_raise_term(&f->mirror, &f->options, term, &error), ST_OK);
}

static void the_term_is_kept_for_its_cluster_only(void **state)
{
    struct fixture *f = *state;
    struct error error = {0};
    fill(f);
    open_mirror(f);
    assert_int_equal(f->mirror.raft_term, 0);
    raise_term(f, 77);
    raise_term(f, 5); /* a member that is behind */
    f->mirror.raft = (struct raft_mark){.index = UINT64_MAX, .at_ms = 1790000000000};
    close_mirror(f);
    open_mirror(f);
    assert_true(f->mirror.is_warm);
    assert_int_equal(f->mirror.raft_term, 77);
    assert_int_equal(f->mirror.raft.index, UINT64_MAX);
    assert_int_equal(f->mirror.raft.at_ms, 1790000000000);
    raise_term(f, 78);
    close_mirror(f);
    assert_int_equal(mirror_directory_discard(&f->options, 500, &error), ST_OK);
    open_mirror(f);
    assert_int_equal(f->mirror.raft_term, 0);
    assert_int_equal(f->mirror.raft.index, 0);
    close_mirror(f);
    struct stat found;
    char path[TEMP_DIR_BYTES + 100];
    path_of(f, MIRROR_FILE_NAME, path);
    assert_int_equal(stat(path, &found), 0);
    assert_int_equal(found.st_mode & 0777, 0600);
}

static void a_discard_that_was_interrupted_is_completed(void **state)
{
    struct fixture *f = *state;
    fill(f);
    struct mirror_file file;
    assert_int_equal(mirror_file_read(fs_posix(), f->dir, &file), ST_OK);
    file.cluster_id = 0; /* this is written first */
    assert_int_equal(mirror_file_write(fs_posix(), f->dir, &file), ST_OK);
    mirror_file_fini(&file);
    open_mirror(f);
    assert_int_equal(local_mirror_revision(f->mirror.engine), 1);
    close_mirror(f);
    char path[TEMP_DIR_BYTES + 100];
    path_of(f, "mirror.old", path);
    assert_int_equal(mkdir(path, 0700), 0);
    write_at(f, "mirror.old/rest", 0, "x");
    struct error error = {0};
    assert_int_equal(mirror_directory_discard(&f->options, 0, &error), ST_OK);
    assert_false(exists(f, "mirror.old"));
}

/* As the mirror of a kube-apiserver. */
static void an_abandoned_mirror_leaves_nothing(void **state)
{
    struct fixture *f = *state;
    open_mirror(f);
    put(f, 10, 1);
    mirror_directory_abandon(&f->mirror, &f->options);
    assert_string_equal(f->warning, "");
    assert_false(exists(f, "mirror"));
    assert_false(exists(f, "mirror.old"));
    open_mirror(f);
    assert_string_equal(f->warning, "");
    assert_int_equal(local_mirror_revision(f->mirror.engine), 1);
    mirror_directory_abandon(&f->mirror, &f->options);
}

/* Its process may have been killed: without a cluster, what it left is of no use. */
static void a_mirror_of_no_cluster_is_not_used_again(void **state)
{
    struct fixture *f = *state;
    open_mirror(f);
    put(f, 10, 1);
    close_mirror(f);
    open_mirror(f);
    assert_false(f->mirror.is_warm);
    assert_int_equal(local_mirror_revision(f->mirror.engine), 1);
    close_mirror(f);
}

static void a_mirror_is_a_copy_of_one_cluster(void **state)
{
    struct fixture *f = *state;
    struct error error = {0};
    fill(f);
    open_mirror(f);
    assert_int_equal(mirror_directory_identify(&f->mirror, &f->options, CLUSTER + 1, &error),
                     ST_CLUSTER_ID_MISMATCH);
    assert_int_equal(mirror_directory_identify(&f->mirror, &f->options, CLUSTER, &error), ST_OK);
    close_mirror(f);
}

/* -- Other directories -- */

static void assert_refused(struct fixture *f, enum status status, const char *why)
{
    struct error error = {0};
    assert_int_equal(mirror_directory_open(&f->options, &f->mirror, &error), status);
    if (!strstr(error.text, why))
        fail_msg("\"%s\" does not say \"%s\"", error.text, why);
    assert_int_equal(mirror_directory_discard(&f->options, 0, &error), status);
}

static void a_store_is_not_taken_for_a_mirror(void **state)
{
    struct fixture *f = *state;
    struct engine *engine;
    struct error error = {0};
    assert_int_equal(engine_local_open(&f->options.mirror, &engine, &error), ST_OK);
    engine_local_close(engine);
    assert_refused(f, ST_WRONG_FORMAT, "stores data itself");
    assert_int_equal(engine_local_open(&f->options.mirror, &engine, &error), ST_OK);
    engine_local_close(engine);
}

static void other_data_are_left_alone(void **state)
{
    struct fixture *f = *state;
    write_at(f, "holiday.jpg", 0, "x");
    assert_refused(f, ST_WRONG_FORMAT, "not empty");
    assert_true(exists(f, "holiday.jpg"));
    char path[TEMP_DIR_BYTES + 100];
    path_of(f, "member", path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_refused(f, ST_WRONG_FORMAT, "real etcd");
}

static void a_mirror_is_not_taken_for_a_store(void **state)
{
    struct fixture *f = *state;
    struct engine *engine;
    struct error error = {0};
    fill(f);
    assert_int_equal(engine_local_open(&f->options.mirror, &engine, &error), ST_WRONG_FORMAT);
    assert_non_null(strstr(error.text, "--upstream-endpoints"));
    char path[TEMP_DIR_BYTES + 100];
    path_of(f, "mirror", path);
    struct engine_local_options inside = f->options.mirror;
    inside.data_dir = path;
    assert_int_equal(engine_local_open(&inside, &engine, &error), ST_WRONG_FORMAT);
    assert_non_null(strstr(error.text, "--upstream-endpoints"));
    assert_warm(f);
}

static void a_mirror_in_use_is_refused(void **state)
{
    struct fixture *f = *state;
    fill(f);
    open_mirror(f);
    struct mirror_directory second;
    struct error error = {0};
    assert_int_equal(mirror_directory_open(&f->options, &second, &error), ST_IN_USE);
    assert_int_equal(mirror_directory_discard(&f->options, 0, &error), ST_IN_USE);
    close_mirror(f);
    assert_warm(f);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* Before the file had an index. */
static void a_mirror_of_the_version_before_is_used(void **state)
{
    struct fixture *f = *state;
    char path[TEMP_DIR_BYTES + 100], text[4096];
    fill(f);
    path_of(f, MIRROR_FILE_NAME, path);
    FILE *file = fopen(path, "r+e");
    assert_non_null(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = 0;
    char *index = strstr(text, "\nindex "), *sum = strstr(text, "\nsum ");
    assert_true(index && sum);
    *sum = 0;
    const char *boot = strchr(index + 1, '\n');
    memmove(index, boot, strlen(boot) + 1);
    *strchr(text, '3') = '2';
    sum = text + strlen(text);
    memcpy(sum, "\n", 2);
    rewind(file);
    int bytes = fprintf(file, "%ssum %08x\n", text, crc32c(0, slice_of(text, strlen(text))));
    assert_int_equal(ftruncate(fileno(file), bytes), 0);
    assert_int_equal(fclose(file), 0);
    open_mirror(f);
    assert_string_equal(f->warning, "");
    assert_true(f->mirror.is_warm);
    assert_int_equal(f->mirror.raft.index, 0);
    close_mirror(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_new_mirror_is_empty_and_cold),
        TEST(content_survives_a_clean_stop),
        TEST(content_survives_a_crash_of_the_process),
        TEST(content_does_not_survive_a_crash_of_the_machine),
        TEST(content_of_other_prefixes_is_thrown_away),
        TEST(a_damaged_file_does_not_prevent_the_start),
        TEST(damaged_content_does_not_prevent_the_start),
        TEST(a_part_of_a_state_is_thrown_away),
        TEST(discarded_revisions_stay_void_until_the_cluster_is_past_them),
        TEST(the_term_is_kept_for_its_cluster_only),
        TEST(a_mirror_of_the_version_before_is_used),
        TEST(a_discard_that_was_interrupted_is_completed),
        TEST(an_abandoned_mirror_leaves_nothing),
        TEST(a_mirror_of_no_cluster_is_not_used_again),
        TEST(a_mirror_is_a_copy_of_one_cluster),
        TEST(a_store_is_not_taken_for_a_mirror),
        TEST(other_data_are_left_alone),
        TEST(a_mirror_is_not_taken_for_a_store),
        TEST(a_mirror_in_use_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
