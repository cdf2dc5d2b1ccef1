/* Real programs on a real loop, whose clock is simulated, so that no test waits for a time limit.
 * With the argument "report" this program is a plugin itself. */
#include "kubeclient/connect/exec_plugin.h"

#include "base/failing_memory_test.h"
#include "base/temp_dir_test.h"
#include "io/loop.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define V1 "client.authentication.k8s.io/v1"
#define CREDENTIAL                                                             \
    "echo '{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "\",\"status\":" \
    "{\"token\":\"t-1\"}}'\n"

/* The C library uses the next ones itself, and ignores them in a new process. */
enum { SIGNALS = 32 };

struct fixture {
    struct child_runner runner;
    struct child_params params; /* parameters of the plugin that runs */
    bool polls;                 /* without a descriptor of the process */
    struct clock_sim clock;
    struct loop *loop;
    char dir[TEMP_DIR_BYTES];
    char program[TEMP_DIR_BYTES + 16];
    struct kubeconfig config;
    struct exec_plugin *plugin;
    int ends; /* calls of on_end */
    enum status status;
    char token[64];
    struct error error;
    size_t descriptors; /* at the beginning */
};

static size_t count_descriptors(void)
{
    size_t count = 0;
    DIR *directory = opendir("/proc/self/fd");
    assert_non_null(directory);
    while (readdir(directory))
        count++;
    closedir(directory);
    return count;
}

static void check_limits(void *ctx, const struct child_result *result)
{
    struct fixture *f = ctx;
    assert_true(result->errors.len <= CHILD_ERRORS_BYTES_MAX);
    assert_true(result->output.len <= CHILD_OUTPUT_BYTES_MAX + 1);
    f->params.done(f->params.ctx, result);
}

static enum status start_child(const struct child_runner *runner, struct loop *loop,
                               const struct child_params *params, struct child **ret_child,
                               struct error *error)
{
    struct fixture *f = (void *)(uintptr_t)CONTAINER_OF(runner, const struct fixture, runner);
    struct child_params changed = *params;
    f->params = *params;
    changed.polls = f->polls;
    changed.done = check_limits;
    changed.ctx = f;
    return child_start(child_runner_posix(), loop, &changed, ret_child, error);
}

static void on_end(void *ctx, enum status status, const struct exec_credential *credential,
                   const struct error *error)
{
    struct fixture *f = ctx;
    f->ends++;
    f->status = status;
    f->error = *error;
    assert_int_equal(status == ST_OK, credential != NULL);
    if (credential)
        snprintf(f->token, sizeof(f->token), "%.*s", SLICE_ARGS(credential->token));
}

static int setup_as(void **state, bool polls)
{
    static struct fixture f;
    memset(&f, 0, sizeof(f));
    f.runner.start = start_child;
    f.polls = polls;
    f.descriptors = count_descriptors();
    clock_sim_init(&f.clock, INT64_C(1700000000) * NS_PER_S);
    assert_int_equal(loop_new(&f.clock.clock, &f.loop), ST_OK);
    temp_dir_make("plugin", f.dir);
    snprintf(f.program, sizeof(f.program), "%s/program", f.dir);
    f.config.server = "https://s";
    f.config.exec.command = f.program;
    f.config.exec.api_version = V1;
    *state = &f;
    return 0;
}

static int setup(void **state)
{
    return setup_as(state, false);
}

static int setup_polling(void **state)
{
    return setup_as(state, true);
}

/* Nothing is left: no process to wait for, no descriptor. */
static int teardown(void **state)
{
    struct fixture *f = *state;
    exec_plugin_free(f->plugin);
    loop_free(f->loop);
    errno = 0;
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
    assert_int_equal(count_descriptors(), f->descriptors);
    temp_dir_remove(f->dir);
    return 0;
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* Its directory is the current one; "$1" is the first argument. */
static void write_program(const struct fixture *f, const char *body)
{
    char text[4096];
    snprintf(text, sizeof(text), "#!/bin/sh\ncd %s\n%s", f->dir, body);
    write_file(f->program, text);
    assert_int_equal(chmod(f->program, 0700), 0);
}

static enum status make(struct fixture *f)
{
    struct exec_plugin_options options = {
        .loop = f->loop, .config = &f->config, .runner = &f->runner, .on_end = on_end, .ctx = f};
    return exec_plugin_new(&options, &f->plugin, &f->error);
}

/* A turn, in which a millisecond of simulated time passes. */
static void turn(struct fixture *f)
{
    clock_sim_advance(&f->clock, NS_PER_MS);
    loop_turn(f->loop, 2 * NS_PER_MS);
}

static int64_t real_now_ns(void)
{
    return clock_mono_ns(clock_system());
}

static void start(struct fixture *f)
{
    if (make(f) != ST_OK)
        assert_string_equal(f->error.text, "");
    exec_plugin_run(f->plugin);
    assert_int_equal(f->ends, 0);
    assert_true(exec_plugin_runs(f->plugin));
}

static void finish(struct fixture *f)
{
    for (int64_t end = real_now_ns() + 60 * NS_PER_S; !f->ends && real_now_ns() < end;)
        turn(f);
    assert_int_equal(f->ends, 1);
    assert_false(exec_plugin_runs(f->plugin));
    exec_plugin_free(TAKE(f->plugin));
}

static void expect_token(struct fixture *f)
{
    start(f);
    finish(f);
    if (f->status != ST_OK)
        assert_string_equal(f->error.text, "");
    assert_string_equal(f->token, "t-1");
}

static void expect_text(const struct fixture *f, enum status status, const char *wanted)
{
    assert_int_equal(f->status, status);
    assert_non_null(strstr(f->error.text, f->config.exec.command));
    if (!strstr(f->error.text, wanted))
        assert_string_equal(f->error.text, wanted);
}

static void expect_failure(struct fixture *f, enum status status, const char *wanted)
{
    start(f);
    finish(f);
    expect_text(f, status, wanted);
}

/* What the program wrote to a file; empty if there is none. */
static const char *text_of(const struct fixture *f, const char *name)
{
    static char text[4096];
    char path[TEMP_DIR_BYTES + 32];
    snprintf(path, sizeof(path), "%s/%s", f->dir, name);
    FILE *file = fopen(path, "r");
    size_t len = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
    if (file)
        fclose(file);
    text[len] = 0;
    return text;
}

static int number_in(const char *text)
{
    return (int)strtol(text, NULL, 10);
}

/* Turns until the program has written the file. */
static const char *wait_for(struct fixture *f, const char *name)
{
    for (int64_t end = real_now_ns() + 60 * NS_PER_S; real_now_ns() < end; turn(f))
        if (*text_of(f, name))
            return text_of(f, name);
    assert_true(false);
    return NULL;
}

/* -- Success -- */

static void credentials_are_read(void **state)
{
    struct fixture *f = *state;
    write_program(f, CREDENTIAL);
    expect_token(f);
}

static void environment_and_arguments_are_given(void **state)
{
    struct fixture *f = *state;
    static const char *const args[] = {"a b", "$HOME;c", NULL};
    static const char *const env[] = {"OWN=first", "REPLACED=new", "OWN=own", NULL};
    assert_int_equal(setenv("INHERITED", "old", 1), 0);
    assert_int_equal(setenv("REPLACED", "old", 1), 0);
    assert_int_equal(setenv("KUBERNETES_EXEC_INFO", "old", 1), 0);
    f->config.exec.args = args;
    f->config.exec.env = env;
    write_program(f, "printf '%s' \"$1|$2|$INHERITED|$REPLACED|$OWN\" > seen\n"
                     "printf '%s' \"$KUBERNETES_EXEC_INFO\" > info\n" CREDENTIAL);
    expect_token(f);
    assert_string_equal(text_of(f, "seen"), "a b|$HOME;c|old|new|own");
    assert_string_equal(text_of(f, "info"), "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1
                                            "\",\"spec\":{\"interactive\":false}}");
    unsetenv("INHERITED");
    unsetenv("REPLACED");
    unsetenv("KUBERNETES_EXEC_INFO");
}

static void cluster_is_given_with_its_authorities(void **state)
{
    struct fixture *f = *state;
    char path[TEMP_DIR_BYTES + 8];
    snprintf(path, sizeof(path), "%s/ca", f->dir);
    f->config.ca.file = path;
    f->config.exec.wants_cluster_info = true;
    assert_int_equal(make(f), ST_NOT_FOUND); /* as in client-go */
    assert_non_null(strstr(f->error.text, "/ca: No such file"));
    write_file(path, "CA");
    write_program(f, "printf '%s' \"$KUBERNETES_EXEC_INFO\" > info\n" CREDENTIAL);
    expect_token(f);
    assert_non_null(strstr(text_of(f, "info"), "\"certificate-authority-data\":\"Q0E=\""));
    f->ends = 0;
    f->config.ca.data = SLICE_LITERAL("DATA");
    expect_token(f);
    assert_non_null(strstr(text_of(f, "info"), "\"certificate-authority-data\":\"REFUQQ==\""));
}

extern char **environ;

static bool is_set_twice(const char *variable)
{
    size_t len = strcspn(variable, "=") + 1;
    int found = 0;
    for (char **other = environ; *other; other++)
        found += strncmp(*other, variable, len) == 0;
    return found > 1;
}

/* The plugin that looks for what it should not have. A shell would change some of it. */
static int report(void)
{
    const char *problem = "t-1";
    char input[16] = "";
    sigset_t blocked;
    sigprocmask(SIG_SETMASK, NULL, &blocked);
    for (int number = 1; number < SIGNALS; number++) {
        struct sigaction action;
        if (sigismember(&blocked, number))
            problem = "a signal is blocked";
        if (sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
            problem = "a signal is ignored";
    }
    if (fcntl(57, F_GETFD) >= 0)
        problem = "a descriptor is open";
    if (readlink("/proc/self/fd/0", input, sizeof(input) - 1) < 0 ||
        strcmp(input, "/dev/null") != 0)
        problem = "it has an input";
    for (char **variable = environ; *variable; variable++)
        if (is_set_twice(*variable))
            problem = *variable;
    printf("{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "\",\"status\":"
           "{\"token\":\"%s\"}}",
           problem);
    return 0;
}

/* A descriptor without CLOEXEC, blocked and ignored signals of this program. */
static void nothing_of_ours_is_inherited(void **state)
{
    struct fixture *f = *state;
    static const char *const args[] = {"report", NULL};
    static const char *const env[] = {"OWN=1", "PATH=/bin", "OWN=2", NULL};
    sigset_t blocked, old;
    struct sigaction ignored = {.sa_handler = SIG_IGN}, before;
    assert_int_equal(setenv("KUBERNETES_EXEC_INFO", "old", 1), 0);
    sigfillset(&blocked);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &blocked, &old), 0);
    assert_int_equal(sigaction(SIGUSR1, &ignored, &before), 0);
    assert_int_equal(dup2(STDERR_FILENO, 57), 57);
    f->config.exec.command = "/proc/self/exe";
    f->config.exec.args = args;
    f->config.exec.env = env;
    expect_token(f);
    assert_int_equal(close(57), 0);
    assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &old, NULL), 0);
    unsetenv("KUBERNETES_EXEC_INFO");
}

/* The write ends of the pipes then have the numbers that they are to replace. */
static void program_without_standard_descriptors_may_use_it(void **state)
{
    struct fixture *f = *state;
    int saved[3];
    fflush(NULL);
    write_program(f, "echo error >&2\n" CREDENTIAL);
    for (int fd = 0; fd < 3; fd++) {
        saved[fd] = fcntl(fd, F_DUPFD_CLOEXEC, 100);
        close(fd);
    }
    start(f);
    finish(f);
    for (int fd = 0; fd < 3; fd++) {
        assert_int_equal(dup2(saved[fd], fd), fd);
        close(saved[fd]);
    }
    assert_int_equal(f->status, ST_OK);
}

static void huge_errors_do_not_block_it(void **state)
{
    struct fixture *f = *state;
    write_program(f, "yes error | head -c 3000000 >&2\n" CREDENTIAL);
    expect_token(f);
}

/* What it left behind keeps its output open. */
static void background_process_is_not_waited_for(void **state)
{
    struct fixture *f = *state;
    write_program(f, "sleep 1000 &\necho $! > pid\n" CREDENTIAL);
    expect_token(f);
    int pid = number_in(text_of(f, "pid"));
    assert_true(pid > 1);
    assert_int_equal(kill(pid, 0), 0); /* it may continue */
    assert_int_equal(kill(pid, SIGKILL), 0);
}

static void it_may_be_run_again(void **state)
{
    struct fixture *f = *state;
    write_program(f, CREDENTIAL);
    start(f);
    for (int runs = 1; runs <= 3; runs++) {
        for (int64_t end = real_now_ns() + 60 * NS_PER_S; f->ends < runs && real_now_ns() < end;)
            turn(f);
        assert_int_equal(f->ends, runs);
        assert_int_equal(f->status, ST_OK);
        exec_plugin_run(f->plugin);
    }
    exec_plugin_free(TAKE(f->plugin)); /* while it runs */
}

/* -- Failures -- */

static void exit_code_and_errors_are_shown(void **state)
{
    struct fixture *f = *state;
    write_program(
        f, "printf 'not\\033[31m logged in\\r\\n\\302\\233 use \\377login\\n' >&2\n" CREDENTIAL
           "exit 3\n");
    expect_failure(f, ST_IO, "/program failed with exit code 3: not [31m logged in use login");
    assert_null(strchr(f->error.text, '\033'));
    assert_null(strchr(f->error.text, '\n'));
    assert_null(strstr(f->error.text, "\302\233"));
    assert_null(strstr(f->error.text, "\377"));
}

static void beginning_of_huge_errors_is_shown(void **state)
{
    struct fixture *f = *state;
    write_program(f, "echo begin >&2; yes error | head -c 3000000 >&2\nexit 1\n");
    expect_failure(f, ST_IO, "failed with exit code 1: begin error error");
    assert_true(strlen(f->error.text) < 400);
}

static void signal_is_shown(void **state)
{
    struct fixture *f = *state;
    write_program(f, "kill -9 $$\n");
    expect_failure(f, ST_IO, "was ended by signal 9");
}

static void garbage_is_refused(void **state)
{
    struct fixture *f = *state;
    write_program(f, "echo '{\"kind\":'; echo oops >&2\n");
    expect_failure(f, ST_MALFORMED,
                   "is of no use: it did not print an ExecCredential: unexpected EOF: oops");
    f->ends = 0;
    write_program(f, "head -c 100000 /dev/zero\n");
    expect_failure(f, ST_MALFORMED, "is of no use");
    f->ends = 0;
    write_program(f, "");
    expect_failure(f, ST_MALFORMED, "it printed nothing");
}

static void endless_output_is_ended(void **state)
{
    struct fixture *f = *state;
    write_program(f, "exec yes\n");
    expect_failure(f, ST_LIMIT, "printed more than 1048576 bytes");
}

/* Also if it has ended before everything was read. */
static void output_beyond_the_limit_is_refused(void **state)
{
    struct fixture *f = *state;
    write_program(f, "yes | head -c 1048577\n");
    expect_failure(f, ST_LIMIT, "printed more than 1048576 bytes");
    f->ends = 0;
    write_program(f, CREDENTIAL "yes '' | head -c 1000000\n");
    expect_token(f);
}

static bool is_gone(int pid)
{
    char path[64], line[256] = "";
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    FILE *file = fopen(path, "r");
    if (!file)
        return true;
    bool read_line = fgets(line, sizeof(line), file) != NULL;
    fclose(file);
    const char *name_end = strrchr(line, ')');
    return !read_line || !name_end ||
           name_end[2] == 'Z'; /* the state of a child whose parent does not wait */
}

static void expect_gone(int pid)
{
    assert_true(pid > 1);
    for (int64_t end = real_now_ns() + 60 * NS_PER_S; !is_gone(pid) && real_now_ns() < end;)
        sched_yield();
    assert_true(is_gone(pid));
}

/* With what it has started. */
static void program_that_does_not_end_is_killed(void **state)
{
    struct fixture *f = *state;
    write_program(f, "trap '' TERM INT HUP\necho asleep >&2\nsleep 1000 &\n"
                     "echo $! > pid.new; mv pid.new pid\nwait\n");
    start(f);
    int pid = number_in(wait_for(f, "pid"));
    clock_sim_advance(&f->clock, CHILD_TIME_NS_MAX - 10 * NS_PER_S);
    turn(f);
    assert_int_equal(f->ends, 0);
    clock_sim_advance(&f->clock, 10 * NS_PER_S);
    finish(f);
    expect_text(f, ST_TIMEOUT, "was not done after 300 s: asleep");
    expect_gone(pid);
}

static bool loop_is_idle(const struct fixture *f)
{
    struct pollfd waits = {.fd = loop_fd(f->loop), .events = POLLIN};
    return poll(&waits, 1, 0) == 0;
}

/* The loop does not spin over the ends of its pipes. */
static void program_may_close_its_output(void **state)
{
    struct fixture *f = *state;
    write_program(f, CREDENTIAL "exec >&- 2>&-\nmkfifo go\necho yes > begun\nread line < go\n");
    start(f);
    wait_for(f, "begun");
    for (int64_t end = real_now_ns() + 60 * NS_PER_S; !loop_is_idle(f) && real_now_ns() < end;)
        turn(f);
    assert_true(loop_is_idle(f));
    assert_int_equal(f->ends, 0);
    char path[TEMP_DIR_BYTES + 8];
    snprintf(path, sizeof(path), "%s/go", f->dir);
    write_file(path, "on\n");
    finish(f);
    assert_int_equal(f->status, ST_OK);
}

static void running_program_is_killed_when_it_is_freed(void **state)
{
    struct fixture *f = *state;
    write_program(f, "echo $$ > pid.new; mv pid.new pid\nsleep 1000\n");
    start(f);
    int pid = number_in(wait_for(f, "pid"));
    exec_plugin_free(TAKE(f->plugin));
    assert_int_equal(f->ends, 0);
    expect_gone(pid);
}

/* -- Programs that cannot be run -- */

static void missing_program_shows_the_hint(void **state)
{
    struct fixture *f = *state;
    f->config.exec.install_hint = "Install it with\n\n  \033[1mapt install it";
    expect_failure(f, ST_NOT_FOUND,
                   "/program cannot be run: No such file or directory. Install it "
                   "with [1mapt install it");
    f->ends = 0;
    f->config.exec.command = "vigil-no-such-program";
    expect_failure(f, ST_NOT_FOUND,
                   "exec plugin vigil-no-such-program cannot be run: it was not found in PATH. "
                   "Install it");
}

static void file_that_cannot_be_run_is_refused(void **state)
{
    struct fixture *f = *state;
    write_file(f->program, CREDENTIAL); /* without "#!": no shell is used */
    expect_failure(f, ST_IO, "cannot be run: Permission denied");
    f->ends = 0;
    assert_int_equal(chmod(f->program, 0700), 0);
    expect_failure(f, ST_IO, "cannot be run: Exec format error");
    f->ends = 0;
    f->config.exec.command = f->dir;
    expect_failure(f, ST_IO, "cannot be run: Permission denied");
}

static void program_is_found_in_absolute_directories_only(void **state)
{
    struct fixture *f = *state;
    char cwd[512], path[256];
    char *old = strdup(getenv("PATH"));
    assert_non_null(getcwd(cwd, sizeof(cwd)));
    write_program(f, CREDENTIAL);
    f->config.exec.command = "program";
    assert_int_equal(chdir(f->dir), 0);
    assert_int_equal(setenv("PATH", "::.:../:", 1), 0);
    expect_failure(f, ST_NOT_FOUND, "not found in PATH");
    f->ends = 0;
    snprintf(path, sizeof(path), "relative:/nowhere:%s:/usr/bin:/bin", f->dir);
    assert_int_equal(setenv("PATH", path, 1), 0);
    expect_token(f);
    f->ends = 0;
    unsetenv("PATH");
    expect_failure(f, ST_NOT_FOUND, "not found in PATH");
    assert_int_equal(chdir(cwd), 0);
    assert_int_equal(setenv("PATH", old, 1), 0);
    free(old);
}

static void invalid_configuration_is_refused(void **state)
{
    struct fixture *f = *state;
    f->config.exec.api_version = "client.authentication.k8s.io/v1alpha1";
    assert_int_equal(make(f), ST_INVALID);
    assert_non_null(strstr(f->error.text, "v1alpha1\" is not supported"));
    f->config.exec.api_version = V1;
    const char **env = calloc(EXEC_PLUGIN_VARIABLES_MAX + 2, sizeof(*env));
    assert_non_null(env);
    for (int i = 0; i <= EXEC_PLUGIN_VARIABLES_MAX; i++)
        env[i] = "A=b";
    f->config.exec.env = env;
    assert_int_equal(make(f), ST_LIMIT);
    env[EXEC_PLUGIN_VARIABLES_MAX] = NULL;
    write_program(f, CREDENTIAL);
    expect_token(f);
    free(env);
}

/* Linux allows 128 KiB for one variable. */
static void too_large_cluster_is_reported(void **state)
{
    struct fixture *f = *state;
    enum { BYTES = 200000 };
    uint8_t *ca = malloc(BYTES);
    assert_non_null(ca);
    memset(ca, 'x', BYTES);
    f->config.ca.data = slice_of(ca, BYTES);
    f->config.exec.wants_cluster_info = true;
    write_program(f, CREDENTIAL);
    expect_failure(f, ST_IO, "cannot be run: Argument list too long");
    free(ca);
}

static void missing_descriptors_are_reported(void **state)
{
    struct fixture *f = *state;
    struct rlimit old, less;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    write_program(f, CREDENTIAL);
    int next = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3); /* the lowest that is free */
    assert_true(next > 0);
    close(next);
    bool succeeded = false;
    for (int more = 0; more < 12; more++) {
        if (make(f) != ST_OK)
            assert_string_equal(f->error.text, "");
        less = (struct rlimit){.rlim_cur = (rlim_t)(next + more), .rlim_max = old.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &less), 0);
        f->ends = 0;
        exec_plugin_run(f->plugin);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
        finish(f);
        /* The program has the same limit, so that it may be the one that fails. */
        assert_true(f->status == ST_OK || f->status == ST_IO || f->status == ST_LIMIT);
        if (more < 3)
            expect_text(f, ST_LIMIT, "cannot be run: Too many open files");
        succeeded |= f->status == ST_OK;
    }
    assert_true(succeeded);
}

/* -- Other children of the program -- */

/* Then the kernel waits for all children, and does not say how they ended. */
static void program_may_ignore_its_children(void **state)
{
    struct fixture *f = *state;
    struct sigaction ignored = {.sa_handler = SIG_IGN}, before;
    assert_int_equal(sigaction(SIGCHLD, &ignored, &before), 0);
    write_program(f, CREDENTIAL);
    expect_token(f);
    f->ends = 0;
    write_program(f, "echo failed >&2\nexit 1\n");
    expect_failure(f, ST_MALFORMED, "it printed nothing (its exit code is unknown): failed");
    f->ends = 0;
    write_program(f, "echo $$ > pid.new; mv pid.new pid\nexec sleep 1000\n");
    start(f);
    int pid = number_in(wait_for(f, "pid"));
    exec_plugin_free(TAKE(f->plugin));
    expect_gone(pid);
    assert_int_equal(sigaction(SIGCHLD, &before, NULL), 0);
}

struct reaper {
    atomic_bool stop;
    pthread_t thread;
};

static void *reap_everything(void *ctx)
{
    struct reaper *reaper = ctx;
    while (!atomic_load(&reaper->stop))
        if (waitpid(-1, NULL, WNOHANG) <= 0)
            sched_yield();
    return NULL;
}

static void program_may_wait_for_all_its_children(void **state)
{
    struct fixture *f = *state;
    struct reaper reaper = {0};
    assert_int_equal(pthread_create(&reaper.thread, NULL, reap_everything, &reaper), 0);
    write_program(f, CREDENTIAL);
    for (int i = 0; i < 20; i++) {
        f->ends = 0;
        expect_token(f);
    }
    f->ends = 0;
    write_program(f, "exit 1\n");
    start(f);
    finish(f);
    assert_true(f->status == ST_IO || f->status == ST_MALFORMED);
    atomic_store(&reaper.stop, true);
    assert_int_equal(pthread_join(reaper.thread, NULL), 0);
}

static void other_children_are_not_waited_for(void **state)
{
    struct fixture *f = *state;
    int status;
    pid_t other = fork();
    if (other == 0)
        _exit(7);
    assert_true(other > 0);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)other, &info, WEXITED | WNOWAIT), 0); /* it has ended */
    write_program(f, CREDENTIAL);
    expect_token(f);
    assert_int_equal(waitpid(other, &status, 0), other);
    assert_int_equal(WEXITSTATUS(status), 7);
}

/* -- Missing memory -- */

static void run_once(void *ctx)
{
    struct fixture *f = ctx;
    bool may_fail = memory_fail_at != 0;
    f->ends = 0;
    enum status status = make(f);
    if (status == ST_OK) {
        exec_plugin_run(f->plugin);
        finish(f);
        status = f->status;
    }
    assert_true(status == ST_OK || (may_fail && status == ST_NOMEM));
}

static void missing_memory_is_reported(void **state)
{
    struct fixture *f = *state;
    static const char *const env[] = {"OWN=1", NULL};
    f->config.exec.env = env;
    f->config.exec.wants_cluster_info = true;
    f->config.ca.data = SLICE_LITERAL("CA");
    memory_exempt = true;
    write_program(f, CREDENTIAL);
    memory_exempt = false;
    assert_true(each_allocation_fails(run_once, f) > 5);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
/* With a descriptor of the process, and without. */
#define TEST_BOTH(name)                                       \
    TEST(name),                                               \
    {                                                         \
#name "_polling", name, setup_polling, teardown, NULL \
    }

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "report") == 0)
        return report();
    const struct CMUnitTest tests[] = {
        TEST_BOTH(credentials_are_read),
        TEST(environment_and_arguments_are_given),
        TEST(cluster_is_given_with_its_authorities),
        TEST(nothing_of_ours_is_inherited),
        TEST(program_without_standard_descriptors_may_use_it),
        TEST_BOTH(huge_errors_do_not_block_it),
        TEST_BOTH(background_process_is_not_waited_for),
        TEST_BOTH(it_may_be_run_again),
        TEST_BOTH(exit_code_and_errors_are_shown),
        TEST(beginning_of_huge_errors_is_shown),
        TEST_BOTH(signal_is_shown),
        TEST(garbage_is_refused),
        TEST_BOTH(endless_output_is_ended),
        TEST_BOTH(output_beyond_the_limit_is_refused),
        TEST_BOTH(program_that_does_not_end_is_killed),
        TEST_BOTH(program_may_close_its_output),
        TEST_BOTH(running_program_is_killed_when_it_is_freed),
        TEST(missing_program_shows_the_hint),
        TEST(file_that_cannot_be_run_is_refused),
        TEST(program_is_found_in_absolute_directories_only),
        TEST(invalid_configuration_is_refused),
        TEST(too_large_cluster_is_reported),
        TEST_BOTH(missing_descriptors_are_reported),
        TEST_BOTH(program_may_ignore_its_children),
        TEST_BOTH(program_may_wait_for_all_its_children),
        TEST_BOTH(other_children_are_not_waited_for),
        TEST_BOTH(missing_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
