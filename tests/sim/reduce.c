#include "reduce.h"

#include "plants.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SECONDS_MAX = 60 };

/* What a child sends last if it has succeeded. */
struct success {
    char mark[8];
    struct run_result result;
};
static const char mark[8] = "success";

_Noreturn static void child(const struct plan *plan, bool trace, int out)
{
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    close(out);
    struct rlimit limit = {.rlim_cur = SECONDS_MAX, .rlim_max = SECONDS_MAX};
    (void)setrlimit(RLIMIT_CPU, &limit); /* the machine may be busy with other work */
    struct success success = {.result = run_plan(plan, trace)};
    memcpy(success.mark, mark, sizeof(mark));
    fflush(stdout);
    ssize_t written = write(STDOUT_FILENO, &success, sizeof(success));
    _exit(written == (ssize_t)sizeof(success) ? 0 : 1);
}

/* Keeps the last bytes in text. */
static size_t keep(char *text, size_t len, size_t room, const char *bytes, size_t count)
{
    if (count > room) {
        bytes += count - room;
        count = room;
    }
    size_t drop = len + count > room ? len + count - room : 0;
    memmove(text, text + drop, len - drop);
    memcpy(text + len - drop, bytes, count);
    return len - drop + count;
}

static size_t read_all(int from, char *text, size_t room)
{
    char bytes[4096];
    size_t len = 0;
    for (ssize_t got; (got = read(from, bytes, sizeof(bytes))) > 0;)
        len = keep(text, len, room, bytes, (size_t)got);
    return len;
}

/* The address sanitizer warns of fibers, although it is informed of them. */
static void drop_warning(char *text)
{
    char *line = strstr(text, "WARNING: ASan doesn't fully support"), *end;
    if (!line || !(end = strchr(line, '\n')))
        return;
    while (line > text && line[-1] != '\n')
        line--;
    memmove(line, end + 1, strlen(end + 1) + 1);
}

void attempt_run(const struct plan *plan, bool trace, struct attempt *ret_attempt)
{
    int ends[2], status = 0;
    fflush(stdout);
    if (pipe(ends) != 0)
        abort();
    pid_t pid = fork();
    if (pid < 0)
        abort();
    if (pid == 0) {
        close(ends[0]);
        child(plan, trace, ends[1]);
    }
    close(ends[1]);
    memset(ret_attempt, 0, sizeof(*ret_attempt));
    size_t len = read_all(ends[0], ret_attempt->text, ATTEMPT_TEXT_BYTES - 1);
    close(ends[0]);
    waitpid(pid, &status, 0);
    struct success success;
    ret_attempt->failed = true;
    ret_attempt->text[len] = 0;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || len < sizeof(success)) {
        drop_warning(ret_attempt->text);
        return;
    }
    memcpy(&success, ret_attempt->text + len - sizeof(success), sizeof(success));
    ret_attempt->failed = memcmp(success.mark, mark, sizeof(mark)) != 0;
    ret_attempt->result = success.result;
}

/* Keeps the limits if the run still fails with them. */
static bool try(uint64_t seed, const struct plan_limits *shorter, struct plan_limits *limits,
                struct attempt *attempt)
{
    struct attempt now;
    struct plan plan = plan_make(seed, shorter);
    attempt_run(&plan, false, &now);
    if (!now.failed)
        return false;
    *limits = *shorter;
    *attempt = now;
    return true;
}

static bool switch_off(uint64_t seed, struct plan_limits *limits, struct attempt *attempt)
{
    bool shorter_now = false;
    for (int i = 0; i < SWITCHES; i++) {
        struct plan_limits shorter = *limits;
        if (!plan_make(seed, limits).on[i])
            continue;
        shorter.off[i] = true;
        shorter_now |= try(seed, &shorter, limits, attempt);
    }
    return shorter_now;
}

static void remove_clients(uint64_t seed, struct plan_limits *limits, struct attempt *attempt)
{
    for (unsigned clients = plan_make(seed, limits).clients - 1; clients > 0; clients--) {
        struct plan_limits shorter = *limits;
        shorter.clients = clients;
        if (!try(seed, &shorter, limits, attempt))
            break;
    }
}

static void remove_operations(uint64_t seed, struct plan_limits *limits, struct attempt *attempt)
{
    for (unsigned step = plan_make(seed, limits).operations / 2; step > 0;) {
        struct plan_limits shorter = *limits;
        unsigned now = plan_make(seed, limits).operations;
        shorter.operations = now - step;
        if (now <= step || !try(seed, &shorter, limits, attempt))
            step /= 2;
    }
}

/* Every change makes another run of the seed, so what was needed before may not be any more. */
void reduce(uint64_t seed, struct plan_limits *limits, struct attempt *attempt)
{
    enum { PASSES_MAX = 4 };
    for (int pass = 0; pass < PASSES_MAX && switch_off(seed, limits, attempt); pass++) {
        remove_clients(seed, limits, attempt);
        remove_operations(seed, limits, attempt);
    }
    remove_clients(seed, limits, attempt);
    remove_operations(seed, limits, attempt);
}

void replay_print(uint64_t seed, const struct plan_limits *limits)
{
    const char *separator = " --without=";
    printf("    build-test/vigil_sim --seed=%llu --trace", (unsigned long long)seed);
    if (plant_now != PLANT_NONE)
        printf(" --plant=%s", plant_name(plant_now));
    for (int i = 0; i < SWITCHES; i++) {
        if (!limits->off[i])
            continue;
        printf("%s%s", separator, switch_name((enum plan_switch)i));
        separator = ",";
    }
    if (limits->clients)
        printf(" --clients=%u", limits->clients);
    if (limits->operations)
        printf(" --operations=%u", limits->operations);
    printf("\n");
}
