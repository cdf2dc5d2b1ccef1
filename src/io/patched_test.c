#include "io/patched.h"

#include "base/temp_dir_test.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { PAGES = 6 };

struct bed {
    char dir[TEMP_DIR_BYTES], path[128];
    size_t page_bytes;
    int fd;
    unsigned ranges;
    uint64_t offset, bytes;
};

/* A page whose part of the file is gone cannot be read, as on a disk that fails. */
static void bed_init(struct bed *bed)
{
    *bed = (struct bed){.page_bytes = (size_t)sysconf(_SC_PAGESIZE)};
    temp_dir_make("patched", bed->dir);
    snprintf(bed->path, sizeof(bed->path), "%s/file", bed->dir);
    bed->fd = open(bed->path, O_RDWR | O_CREAT, 0600);
    assert_true(bed->fd >= 0);
    char *page = malloc(bed->page_bytes);
    memset(page, 'x', bed->page_bytes);
    for (size_t i = 0; i < PAGES; i++)
        assert_int_equal(write(bed->fd, page, bed->page_bytes), bed->page_bytes);
    free(page);
}

static void bed_fini(struct bed *bed)
{
    close(bed->fd);
    temp_dir_remove(bed->dir);
}

static void note_loss(void *ctx, const char *path, uint64_t offset, uint64_t bytes)
{
    struct bed *bed = ctx;
    if (strcmp(path, bed->path) != 0)
        return;
    bed->ranges++;
    bed->offset = offset;
    bed->bytes = bytes;
}

static void unreadable_pages_are_zero_and_reported(void **state)
{
    (void)state;
    struct bed bed;
    const uint8_t *base;
    bed_init(&bed);
    uint64_t before = patched_losses(note_loss, &bed);
    assert_int_equal(patched_map(bed.path, bed.fd, PAGES * bed.page_bytes, &base), ST_OK);
    assert_int_equal(ftruncate(bed.fd, (off_t)(3 * bed.page_bytes)), 0);
    for (size_t i = 0; i < PAGES; i++) {
        assert_int_equal(base[i * bed.page_bytes + 7], i < 3 ? 'x' : 0);
        assert_int_equal(base[(i + 1) * bed.page_bytes - 1], i < 3 ? 'x' : 0);
    }
    patched_unmap(base);
    assert_int_equal(patched_losses(note_loss, &bed) - before, 3 * bed.page_bytes);
    assert_int_equal(bed.ranges, 1); /* neighbours are one part */
    assert_int_equal(bed.offset, 3 * bed.page_bytes);
    assert_int_equal(bed.bytes, 3 * bed.page_bytes);
    bed_fini(&bed);
}

static void mappings_without_losses_leave_nothing(void **state)
{
    (void)state;
    struct bed bed;
    bed_init(&bed);
    uint64_t before = patched_losses(note_loss, &bed);
    for (int i = 0; i < 1000; i++) {
        const uint8_t *base;
        assert_int_equal(patched_map(bed.path, bed.fd, bed.page_bytes, &base), ST_OK);
        assert_int_equal(base[5], 'x');
        patched_unmap(base);
    }
    assert_int_equal(patched_losses(note_loss, &bed), before);
    bed_fini(&bed);
}

static void on_bus_error(int number)
{
    (void)number;
    _exit(17);
}

static void faults_elsewhere_go_to_the_handler_from_before(void **state)
{
    (void)state;
    struct bed bed;
    bed_init(&bed);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const uint8_t *base;
        signal(SIGBUS, on_bus_error);
        if (patched_map(bed.path, bed.fd, bed.page_bytes, &base) != ST_OK)
            _exit(90);
        volatile const uint8_t *other =
            mmap(NULL, 2 * bed.page_bytes, PROT_READ, MAP_SHARED, bed.fd, 0);
        if (ftruncate(bed.fd, (off_t)bed.page_bytes) != 0)
            _exit(91);
        _exit(other[bed.page_bytes] ? 92 : 93);
    }
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 17);
    bed_fini(&bed);
}

int main(void)
{
    /* The first one: afterwards the handler is installed, and the one from before is known. */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faults_elsewhere_go_to_the_handler_from_before),
        cmocka_unit_test(unreadable_pages_are_zero_and_reported),
        cmocka_unit_test(mappings_without_losses_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
