#include "cmd/ctl/kv/child.h"

#include "base/xalloc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

/* The environment with the variables, which take precedence; the caller frees it. */
static char **make_environment(const struct child_variables *variables)
{
    size_t count = 0, added = 0;
    while (environ[count])
        count++;
    char **all = xcalloc(count + CHILD_VARIABLES_MAX + 1, sizeof(*all));
    for (; variables->all[added]; added++)
        all[added] = (char *)(uintptr_t)variables->all[added];
    for (size_t i = 0; i < count; i++) {
        bool replaced = false;
        for (size_t k = 0; k < added; k++)
            replaced = replaced || strncmp(environ[i], all[k], strcspn(all[k], "=") + 1) == 0;
        if (!replaced)
            all[added++] = environ[i];
    }
    return all;
}

/* The child has the signals of a program that a shell has started. */
static int spawn(pid_t *ret_pid, char **words, char **environment,
                 const posix_spawn_file_actions_t *files)
{
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    int failure = posix_spawnp(ret_pid, words[0], files, &attributes, words, environment);
    posix_spawnattr_destroy(&attributes);
    return failure;
}

static void describe_failure(const char *word, int failure, char ret_reason[CHILD_REASON_BYTES])
{
    const char *why = failure == ENOENT ? "no such file or directory" : "permission denied";
    /* Go's words differ for a program that was searched in PATH and for one with a path. */
    if (!strchr(word, '/'))
        snprintf(ret_reason, CHILD_REASON_BYTES,
                 "exec: \"%.100s\": executable file not found in $PATH", word);
    else
        snprintf(ret_reason, CHILD_REASON_BYTES, "fork/exec %.100s: %s", word, why);
}

pid_t child_start(const char *const *words, size_t count, const struct child_variables *variables,
                  char ret_reason[CHILD_REASON_BYTES])
{
    char **copy = xcalloc(count + 1, sizeof(*copy));
    char **environment = make_environment(variables);
    pid_t pid = -1;
    memcpy(copy, words, count * sizeof(*copy));
    int failure = spawn(&pid, copy, environment, NULL);
    if (failure) {
        describe_failure(words[0], failure, ret_reason);
        pid = -1;
    }
    free(environment);
    free(copy);
    return pid;
}

/* input and output are pipes: [0] is read, [1] is written. */
static pid_t spawn_piped(const char *word, int input[2], int output[2],
                         char ret_reason[CHILD_REASON_BYTES])
{
    char *words[] = {(char *)(uintptr_t)word, NULL};
    posix_spawn_file_actions_t files;
    pid_t pid = -1;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, input[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files, output[1], STDOUT_FILENO);
    int failure = spawn(&pid, words, environ, &files);
    posix_spawn_file_actions_destroy(&files);
    if (!failure)
        return pid;
    describe_failure(word, failure, ret_reason);
    return -1;
}

pid_t child_start_piped(const char *word, int ret_pipes[2], char ret_reason[CHILD_REASON_BYTES])
{
    int input[2] = {-1, -1}, output[2] = {-1, -1};
    pid_t pid = -1;
    if (pipe2(input, O_CLOEXEC) != 0 || pipe2(output, O_CLOEXEC) != 0)
        snprintf(ret_reason, CHILD_REASON_BYTES, "pipe2: %s", strerrordesc_np(errno));
    else
        pid = spawn_piped(word, input, output, ret_reason);
    /* The child has its ends of the pipes; the caller takes the other two. */
    if (pid >= 0) {
        ret_pipes[0] = output[0];
        ret_pipes[1] = input[1];
        output[0] = input[1] = -1;
    }
    for (int i = 0; i < 2; i++) {
        if (input[i] >= 0)
            close(input[i]);
        if (output[i] >= 0)
            close(output[i]);
    }
    return pid;
}

int child_exit_code(int status, char ret_reason[CHILD_REASON_BYTES])
{
    if (WIFEXITED(status)) {
        snprintf(ret_reason, CHILD_REASON_BYTES, "exit status %d", WEXITSTATUS(status));
        return WEXITSTATUS(status);
    }
    const char *name = strsignal(WTERMSIG(status));
    snprintf(ret_reason, CHILD_REASON_BYTES, "signal: %s", name);
    for (char *at = ret_reason; *at; at++)
        *at = (char)(*at >= 'A' && *at <= 'Z' ? *at | 0x20 : *at);
    return 255;
}
