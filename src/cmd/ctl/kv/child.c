#include "cmd/ctl/kv/child.h"

#include "base/xalloc.h"

#include <errno.h>
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
static int spawn(pid_t *ret_pid, char **words, char **environment)
{
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    int failure = posix_spawnp(ret_pid, words[0], NULL, &attributes, words, environment);
    posix_spawnattr_destroy(&attributes);
    return failure;
}

static void describe_failure(const char *word, int failure, char ret_reason[CHILD_REASON_BYTES])
{
    const char *why = failure == ENOENT ? "no such file or directory" : "permission denied";
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
    int failure = spawn(&pid, copy, environment);
    if (failure) {
        describe_failure(words[0], failure, ret_reason);
        pid = -1;
    }
    free(environment);
    free(copy);
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
