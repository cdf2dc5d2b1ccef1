#include "engine/local/page_fault.h"

#include "base/temp_dir_test.h"
#include "store/log/log.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Truncates the file under the mapping, which has the same effect as an unreadable page. */
static void read_a_lost_page(const char *dir, const char *program)
{
    struct log *log = NULL;
    struct error error;
    enum status status = log_open(
        &(struct log_options){
            .fs = fs_posix(),
            .dir = dir,
            .segment_bytes_first = 64 << 10,
            .segment_bytes_max = 64 << 10,
        },
        0, NULL, 0, NULL, NULL, &log, &error);
    if (status != ST_OK || log_reserve(log, 40000) != ST_OK)
        _exit(90);
    log_loc loc;
    memset(log_append_begin(log, &loc), 'x', 40000);
    log_append_end(log, 1, 0, 40000);
    char path[128];
    snprintf(path, sizeof(path), "%s/0000000000000001.seg", dir);
    if (log_write(log) != ST_OK || log_sync(log) != ST_OK || truncate(path, 4096) != 0)
        _exit(91);
    page_fault_report(program, "/data \"dir\"", false);
    volatile uint8_t byte = log_rest_at(log, loc).ptr[20000];
    _exit(byte == 'x' ? 92 : 93);
}

/* Returns what a process writes that reads the lost page. */
static void run(const char *program, char text[static 4096])
{
    char dir[TEMP_DIR_BYTES];
    temp_dir_make("fault", dir);
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        read_a_lost_page(dir, program);
    }
    close(ends[1]);
    size_t len = 0;
    for (ssize_t n; len < 4095 && (n = read(ends[0], text + len, 4095 - len)) > 0;)
        len += (size_t)n;
    text[len] = 0;
    close(ends[0]);
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), PAGE_FAULT_EXIT);
    temp_dir_remove(dir);
}

static void a_lost_page_is_logged_before_the_server_ends(void **state)
{
    (void)state;
    char text[4096];
    run(NULL, text);
    assert_int_equal(strncmp(text, "{\"level\":\"fatal\",", 17), 0);
    assert_non_null(strstr(text, "/0000000000000001.seg\",\"offset\":20"));
    assert_non_null(strstr(text, "vigil salvage /data dir --to NEW"));
    assert_non_null(strstr(text, "\"}\n"));
}

static void a_command_says_it_in_a_sentence(void **state)
{
    (void)state;
    char text[4096];
    run("vigil repair", text);
    assert_int_equal(strncmp(text, "vigil repair: the disk cannot read a page of /", 46), 0);
    assert_non_null(strstr(text, "/0000000000000001.seg, offset 20"));
    assert_non_null(strstr(text, "vigil salvage /data dir --to NEW"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lost_page_is_logged_before_the_server_ends),
        cmocka_unit_test(a_command_says_it_in_a_sentence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
