#include "engine/local/page_fault.h"
#include "store/log/damage.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

/* For the signal handler. A process opens one store at a time. */
static _Atomic(const struct log *) watched;

/* Writes a number in hex; async-signal-safe. */
static char *hex_write(char *to, uint64_t number, int digits)
{
    for (int i = digits - 1; i >= 0; i--)
        *to++ = "0123456789abcdef"[(number >> (4 * i)) & 15];
    return to;
}

static char *text_write(char *to, const char *text)
{
    while (*text)
        *to++ = *text++;
    return to;
}

static void say_where(uint64_t segment, uint64_t offset)
{
    char line[400];
    char *p =
        text_write(line, "{\"level\":\"fatal\",\"msg\":\"the disk could not give a page of the "
                         "log; the server stops\",\"segment\":\"");
    p = hex_write(p, segment, 16);
    p = text_write(p, ".seg\",\"offset\":\"0x");
    p = hex_write(p, offset, 9);
    p = text_write(p, "\",\"help\":\"check the disk, and which programs write into the data "
                      "directory; start again, "
                      "or restore a snapshot\"}\n");
    ssize_t ignored = write(STDERR_FILENO, line, (size_t)(p - line));
    (void)ignored;
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
    (void)context;
    const struct log *log = atomic_load(&watched);
    uint64_t segment, offset;
    if (log && log_find_address(log, info->si_addr, &segment, &offset))
        say_where(segment, offset);
    /* SA_RESETHAND has restored the default action: the fault occurs again and ends the process. */
    raise(number);
}

/* -- While opening -- */

static _Atomic(const char *) guarded;
static struct sigaction before[3]; /* the previous handlers, in the order of start_faults */

static void write_all(const char *text)
{
    ssize_t ignored = write(STDERR_FILENO, text, strlen(text));
    (void)ignored;
}

/* SIGBUS can come from the log or the checkpoint; the others almost certainly from the checkpoint.
 */
static void on_start_fault(int number)
{
    const char *dir = atomic_load(&guarded);
    write_all("{\"level\":\"fatal\",\"msg\":\"cannot start\",\"error\":\"");
    write_all(number == SIGBUS ? "the disk could not give a page of the log or of the checkpoint, "
                               : "most likely the checkpoint is damaged, ");
    write_all(dir ? dir : "the data directory");
    write_all(number == SIGBUS ? "/log or /meta" : "/meta");
    write_all(": look at the disk, then restore the data directory from a backup or a snapshot"
              "\"}\n");
    _exit(1);
}

static const int start_faults[] = {SIGSEGV, SIGBUS, SIGABRT};

void page_fault_guard(const char *data_dir)
{
    atomic_store(&guarded, data_dir);
    struct sigaction action = {.sa_handler = on_start_fault, .sa_flags = (int)SA_RESETHAND};
    for (size_t i = 0; i < COUNT_OF(start_faults); i++)
        sigaction(start_faults[i], &action, &before[i]);
}

void page_fault_unguard(void)
{
    for (size_t i = 0; i < COUNT_OF(start_faults); i++)
        sigaction(start_faults[i], &before[i], NULL);
    atomic_store(&guarded, NULL);
}

void page_fault_watch(const struct log *log)
{
    atomic_store(&watched, log);
    struct sigaction action = {.sa_sigaction = on_bus_error,
                               .sa_flags = (int)(SA_SIGINFO | SA_RESETHAND)};
    sigaction(SIGBUS, &action, NULL);
}

void page_fault_unwatch(void)
{
    signal(SIGBUS, SIG_DFL);
    atomic_store(&watched, NULL);
}
