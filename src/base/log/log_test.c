#include "base/log/log.h"

#include "base/clock.h"
#include "base/log/output.h"
#include "base/temp_dir_test.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char path[64];
static struct clock_sim clock_stopped;

static void open_log(enum log_format format)
{
    struct error error;
    snprintf(path, sizeof(path), "/tmp/vigil-log-test-%d", getpid());
    unlink(path);
    clock_sim_init(&clock_stopped, INT64_C(1794701710229359000));
    struct logger_options options = {path, format, &clock_stopped.clock, {0}};
    if (logger_open(&options, &error) != ST_OK)
        fail_msg("%s", error.text);
}

static char *close_log(void)
{
    static char text[1 << 22];
    logger_close();
    log_set_level(LOG_INFO);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = 0;
    fclose(file);
    unlink(path);
    return text;
}

/* Compilers differ in the line number of a macro call of several lines. */
static char *without_line_numbers(char *text)
{
    for (char *at = text; (at = strstr(at, "_test.c:"));) {
        at += strlen("_test.c:");
        size_t digits = strspn(at, "0123456789");
        assert_true(digits > 0);
        *at = 'N';
        memmove(at + 1, at + digits, strlen(at + digits) + 1);
    }
    return text;
}

static void event_is_one_json_object_on_a_line(void **state)
{
    (void)state;
    open_log(LOG_JSON);
    log_info("compacted", LOG_I64("rev", -7), LOG_TEXT("by", "x"), LOG_BOOL("ok", true),
             LOG_HEX("member-id", UINT64_C(0x8e9e05c52164694d)), LOG_U64("n", UINT64_MAX),
             LOG_F64("share", 0.5), LOG_DURATION("took", 90 * NS_PER_S),
             LOG_LIST("urls", "http://a:1,http://b:2"), LOG_LIST("none", ""),
             LOG_TIME("at", INT64_C(1794701710229359000)),
             LOG_SLICES("args", ((struct slice[]){SLICE_LITERAL("a,b"), SLICE_LITERAL("c")}), 2));
    log_warn("nothing more");
    const char *expected =
        "{\"level\":\"info\",\"ts\":\"2026-11-15T00:15:10.229359Z\","
        "\"caller\":\"base/log/log_test.c:N\",\"msg\":\"compacted\",\"rev\":-7,\"by\":\"x\","
        "\"ok\":true,\"member-id\":\"8e9e05c52164694d\",\"n\":18446744073709551615,"
        "\"share\":0.5,\"took\":\"1m30s\",\"urls\":[\"http://a:1\",\"http://b:2\"],"
        "\"none\":[],\"at\":\"2026-11-15T00:15:10.229359Z\",\"args\":[\"a,b\",\"c\"]}\n"
        "{\"level\":\"warn\",\"ts\":\"2026-11-15T00:15:10.229359Z\","
        "\"caller\":\"base/log/log_test.c:N\",\"msg\":\"nothing more\"}\n";
    assert_string_equal(without_line_numbers(close_log()), expected);
}

static void bytes_from_outside_cannot_break_the_line(void **state)
{
    (void)state;
    open_log(LOG_JSON);
    log_info("x", LOG_SLICE("k", slice_of("a\"b\\c\nd\x01\xff\xc3\xa9\xed\xa0\x80\0", 15)));
    assert_non_null(strstr(close_log(), "\"k\":\"a\\\"b\\\\c\\nd\\u0001\\ufffd\u00e9\\ufffd"
                                        "\\ufffd\\ufffd\\u0000\"}\n"));
    open_log(LOG_CONSOLE);
    log_info("x", LOG_TEXT("k", "\xc2\x9b\x33\x31m\xc2\xa0")); /* red, in eight bits */
    assert_non_null(strstr(close_log(), "\"\\u009b31m\xc2\xa0\"}\n"));
}

static void long_texts_and_long_lines_are_cut_and_stay_json(void **state)
{
    (void)state;
    static char longer[5000];
    memset(longer, 'x', sizeof(longer) - 1);
    open_log(LOG_JSON);
    log_info("cut", LOG_TEXT("k", longer), LOG_I64("after", 1));
    char *text = close_log();
    assert_non_null(strstr(text, "xxx...\",\"after\":1}\n"));
    assert_true(strlen(text) < 1200);

    open_log(LOG_JSON);
    log_info("cut", LOG_TEXT("a", longer), LOG_TEXT("b", longer), LOG_TEXT("c", longer),
             LOG_TEXT("d", longer), LOG_I64("e", 1));
    text = close_log();
    assert_true(strlen(text) <= LOG_LINE_BYTES);
    assert_non_null(strstr(text, "xxx...\",\"cut\":true}\n"));
    assert_non_null(strstr(text, "\"c\":"));
    assert_null(strstr(text, "\"d\":"));
}

static void levels_below_are_not_even_evaluated(void **state)
{
    (void)state;
    int evaluated = 0;
    open_log(LOG_JSON);
    log_debug("no", LOG_I64("x", ++evaluated));
    log_set_level(LOG_DEBUG);
    log_debug("yes", LOG_I64("x", ++evaluated));
    log_set_level(LOG_ERROR);
    log_warn("no", LOG_I64("x", ++evaluated));
    assert_int_equal(evaluated, 1);
    char *text = close_log();
    assert_non_null(strstr(text, "\"level\":\"debug\""));
    assert_null(strstr(text, "\"no\""));
}

static void console_lines_have_columns_and_no_colour_in_a_file(void **state)
{
    (void)state;
    open_log(LOG_CONSOLE);
    log_error("it\nbroke", LOG_I64("code", 3));
    log_info("plain");
    char *text = close_log();
    assert_non_null(strstr(text, "2026-11-15T00:15:10.229359Z\terror\tbase/log/log_test.c:"));
    assert_non_null(strstr(text, "\tit\\nbroke\t{\"code\":3}\n"));
    assert_non_null(strstr(text, "\tplain\n"));
    assert_null(strchr(text, '\033'));
}

static void *log_many(void *arg)
{
    for (int i = 0; i < 500; i++)
        log_info("from a thread", LOG_TEXT("who", arg), LOG_I64("i", i));
    return NULL;
}

static void lines_of_threads_do_not_mix(void **state)
{
    (void)state;
    open_log(LOG_JSON);
    pthread_t threads[4];
    char *names[] = {"a", "b", "c", "d"};
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, log_many, names[i]), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    char *text = close_log();
    int lines = 0;
    for (char *at = text; *at; lines++) {
        char *end = strchr(at, '\n');
        assert_non_null(end);
        assert_memory_equal(at, "{\"level\":\"info\"", 15);
        assert_int_equal(end[-1], '}');
        at = end + 1;
    }
    assert_int_equal(lines, 2000);
}

static void open_pipe(int ends[2])
{
    char name[32];
    struct error error;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    snprintf(name, sizeof(name), "/dev/fd/%d", ends[1]);
    struct logger_options options = {.outputs = name};
    assert_int_equal(logger_open(&options, &error), ST_OK);
}

static void close_pipe(int ends[2])
{
    logger_close();
    close(ends[0]);
    close(ends[1]);
}

static long told_of(const char *line)
{
    const char *told = strstr(line, "\"dropped-lines\":");
    return told ? strtol(strchr(told, ':') + 1, NULL, 10) : 0;
}

/* Logs and reads until lines have reported that many dropped ones. */
static void expect_dropped(int fd, long count)
{
    static char got[1 << 17];
    size_t len = 0;
    int64_t end = clock_mono_ns(clock_system()) + 60 * NS_PER_S;
    for (long dropped = 0; dropped < count;) {
        assert_true(clock_mono_ns(clock_system()) < end);
        log_info("heard again");
        if (poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 1) != 1)
            continue;
        ssize_t n = read(fd, got + len, sizeof(got) - 1 - len);
        assert_true(n > 0);
        got[len + (size_t)n] = 0;
        char *line = got;
        for (char *stop; (stop = strchr(line, '\n')); line = stop + 1) {
            *stop = 0;
            dropped += told_of(line);
        }
        len = strlen(line);
        memmove(got, line, len);
    }
}

/* The pipe is not read: lines are dropped, and the next one that is written contains their number.
 */
static void stuck_reader_does_not_block_logging(void **state)
{
    (void)state;
    int ends[2];
    open_pipe(ends);
    int64_t start = clock_mono_ns(clock_system());
    for (int i = 0; i < 2000; i++)
        log_info("into the void", LOG_I64("i", i));
    /* If each line had waited for the reader, this would have taken a quarter of an hour. */
    assert_true(clock_mono_ns(clock_system()) - start < 20 * LOG_READER_WAIT_MS * NS_PER_MS);
    logger_flush(60 * NS_PER_S);
    expect_dropped(ends[0], 1000);
    close_pipe(ends);
}

/* The logger's thread waits for a reader while others log: the queue is limited. */
static void queue_has_a_limit(void **state)
{
    (void)state;
    int ends[2];
    static char longer[1000];
    memset(longer, 'x', sizeof(longer) - 1);
    open_pipe(ends);
    for (int i = 0; i < 2 * LOG_QUEUE_BYTES / 1000; i++)
        log_info("much", LOG_TEXT("x", longer));
    expect_dropped(ends[0], 100);
    close_pipe(ends);
}

static void output_named_twice_gets_lines_once(void **state)
{
    (void)state;
    char twice[160];
    struct error error;
    snprintf(path, sizeof(path), "/tmp/vigil-log-test-%d", getpid());
    unlink(path);
    snprintf(twice, sizeof(twice), "%s,%s", path, path);
    struct logger_options options = {.outputs = twice};
    assert_int_equal(logger_open(&options, &error), ST_OK);
    log_info("once");
    char *text = close_log();
    assert_null(strstr(strstr(text, "once") + 1, "once"));
}

static void file_that_was_moved_is_created_again(void **state)
{
    (void)state;
    char moved[80];
    open_log(LOG_JSON);
    log_info("before");
    logger_flush(60 * NS_PER_S);
    snprintf(moved, sizeof(moved), "%s.1", path);
    assert_int_equal(rename(path, moved), 0);
    logger_reopen();
    log_info("after");
    char *text = close_log();
    assert_non_null(strstr(text, "\"after\""));
    assert_null(strstr(text, "\"before\""));
    assert_int_equal(unlink(moved), 0);
}

static unsigned count_and_remove(const char *directory, const char *prefix)
{
    unsigned count = 0;
    DIR *dir = opendir(directory);
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0) {
            assert_int_equal(unlinkat(dirfd(dir), entry->d_name, 0), 0);
            count++;
        }
    }
    closedir(dir);
    return count;
}

static void large_file_is_rotated(void **state)
{
    (void)state;
    char directory[TEMP_DIR_BYTES], file[TEMP_DIR_BYTES + 16];
    struct error error;
    temp_dir_make("log-test", directory);
    snprintf(file, sizeof(file), "%s/v.log", directory);
    struct logger_options options = {.outputs = file,
                                     .rotation = {.file_bytes_max = 1000, .backups_max = 2}};
    assert_int_equal(logger_open(&options, &error), ST_OK);
    for (int i = 0; i < 50; i++) {
        log_info("a line of more than a hundred bytes with its head", LOG_I64("i", i));
        if (i % 8 == 0) { /* names contain milliseconds */
            logger_flush(60 * NS_PER_S);
            usleep(2000);
        }
    }
    logger_close();
    struct stat stat_now;
    assert_int_equal(stat(file, &stat_now), 0);
    assert_true(stat_now.st_size > 0 && stat_now.st_size <= 1000);
    assert_int_equal(count_and_remove(directory, "v-2"), 2);
    assert_int_equal(count_and_remove(directory, "v.log"), 1);
    assert_int_equal(rmdir(directory), 0);
}

static void journal_gets_fields_with_their_priority(void **state)
{
    (void)state;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct error error;
    char got[1024];
    snprintf(address.sun_path, sizeof(address.sun_path), "/tmp/vigil-log-test-%d.sock", getpid());
    int journal = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(journal, (const struct sockaddr *)&address, sizeof(address)), 0);
    const char *before = log_journal_socket;
    log_journal_socket = address.sun_path;
    struct logger_options options = {.outputs = "systemd/journal"};
    assert_int_equal(logger_open(&options, &error), ST_OK);
    log_warn("careful");
    ssize_t n = recv(journal, got, sizeof(got) - 1, 0);
    assert_true(n > 0);
    got[n] = 0;
    assert_memory_equal(got, "PRIORITY=4\nSYSLOG_IDENTIFIER=vigil\nMESSAGE={\"level\":\"warn\"",
                        50);
    logger_close();
    log_journal_socket = before;
    close(journal);
    unlink(address.sun_path);
}

static void outputs_that_cannot_be_opened_are_errors(void **state)
{
    (void)state;
    struct error error;
    struct logger_options nowhere = {.outputs = "/no/such/directory/log"};
    struct logger_options many = {.outputs = "/dev/null,/dev//null,/dev///null,/dev////null,"
                                             "/dev/./null,/./dev/null,//dev/null,stderr,stdout"};
    assert_int_equal(logger_open(&nowhere, &error), ST_NOT_FOUND);
    assert_string_equal(error.text,
                        "cannot log to /no/such/directory/log: No such file or directory");
    assert_int_equal(logger_open(&many, &error), ST_LIMIT);
}

static void fatal_ends_the_process_after_its_line(void **state)
{
    (void)state;
    snprintf(path, sizeof(path), "/tmp/vigil-log-test-%d", getpid());
    struct logger_options options = {.outputs = path};
    struct error error;
    pid_t child = fork();
    if (child == 0) {
        assert_int_equal(logger_open(&options, &error), ST_OK);
        log_fatal("cannot continue");
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    assert_non_null(strstr(close_log(), "\"level\":\"fatal\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(event_is_one_json_object_on_a_line),
        cmocka_unit_test(bytes_from_outside_cannot_break_the_line),
        cmocka_unit_test(long_texts_and_long_lines_are_cut_and_stay_json),
        cmocka_unit_test(levels_below_are_not_even_evaluated),
        cmocka_unit_test(console_lines_have_columns_and_no_colour_in_a_file),
        cmocka_unit_test(lines_of_threads_do_not_mix),
        cmocka_unit_test(stuck_reader_does_not_block_logging),
        cmocka_unit_test(queue_has_a_limit),
        cmocka_unit_test(output_named_twice_gets_lines_once),
        cmocka_unit_test(file_that_was_moved_is_created_again),
        cmocka_unit_test(large_file_is_rotated),
        cmocka_unit_test(journal_gets_fields_with_their_priority),
        cmocka_unit_test(outputs_that_cannot_be_opened_are_errors),
        cmocka_unit_test(fatal_ends_the_process_after_its_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
