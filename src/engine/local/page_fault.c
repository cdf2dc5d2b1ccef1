#include "engine/local/page_fault.h"

#include "base/status.h"

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Prepared, so that the handlers only have to write it. */
static struct {
    const char *begin, *at, *help; /* the texts around the file and around the offset */
    char remedy[1200];             /* and the end of the line */
    char bad_start[1400];
} report;

/* -- In handlers: everything here is async-signal-safe -- */

static void write_bytes(const char *text, size_t len)
{
    ssize_t ignored = write(STDERR_FILENO, text, len);
    (void)ignored;
}

static void write_text(const char *text)
{
    write_bytes(text, strlen(text));
}

static void write_number(uint64_t number)
{
    char text[20], *at = text + sizeof(text);
    do
        *--at = (char)('0' + number % 10);
    while (number /= 10);
    write_bytes(at, (size_t)(text + sizeof(text) - at));
}

static uint64_t hex_read(const char **at)
{
    uint64_t number = 0;
    for (;; (*at)++) {
        char c = **at;
        if (c >= '0' && c <= '9')
            number = number << 4 | (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            number = number << 4 | (uint64_t)(c - 'a' + 10);
        else
            return number;
    }
}

/*
 * A line of /proc/self/maps: "from-to rwxp offset device inode path". If the address is in it and
 * it has a path, writes path and offset.
 */
static bool write_if_here(const char *line, uint64_t address)
{
    const char *at = line, *path = strchr(line, '/');
    uint64_t from = hex_read(&at);
    at += *at == '-';
    uint64_t to = hex_read(&at);
    at += strcspn(at + (*at == ' '), " ") + 1;
    at += *at == ' ';
    uint64_t offset = hex_read(&at);
    if (address < from || address >= to || !path)
        return false;
    write_text(report.begin);
    write_text(path);
    write_text(report.at);
    write_number(address - from + offset);
    write_text(report.help);
    return true;
}

/* Reads the mappings of the process line by line. */
static bool write_place(uint64_t address)
{
    static char line[8192]; /* a path has at most 4096 bytes, of which some may be escaped */
    size_t len = 0;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    for (char byte; fd >= 0 && read(fd, &byte, 1) == 1;) {
        if (byte != '\n') {
            line[len] = byte;
            len += len < sizeof(line) - 1;
            continue;
        }
        line[len] = 0;
        len = 0;
        if (write_if_here(line, address))
            return true;
    }
    return false;
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
    (void)context;
    /* Otherwise it was sent by a process, and SA_RESETHAND has restored the default action. */
    if (info->si_code != BUS_ADRERR) {
        raise(number);
        return;
    }
    if (!write_place((uint64_t)(uintptr_t)info->si_addr)) {
        write_text(report.begin);
        write_text("unknown");
        write_text(report.at);
        write_number(0);
        write_text(report.help);
    }
    write_text(report.remedy);
    _exit(PAGE_FAULT_EXIT);
}

static void on_start_fault(int number)
{
    (void)number;
    write_text(report.bad_start);
    _exit(EXIT_FAILURE);
}

/* -- Preparing -- */

/* A path within a string of JSON; what would need an escape is left out. */
static void plain_path(char to[static 512], const char *path)
{
    size_t len = 0;
    for (; *path && len < 511; path++) {
        if ((unsigned char)*path >= ' ' && *path != '"' && *path != '\\')
            to[len++] = *path;
    }
    to[len] = 0;
}

void page_fault_report(const char *program, const char *data_dir, bool is_mirror)
{
    static char begin[128];
    char dir[512];
    plain_path(dir, data_dir);
    const char *end = program ? "\n" : "\"}\n";
    if (program)
        snprintf(begin, sizeof(begin), "%s: the disk cannot read a page of ", program);
    report.begin = program ? begin
                           : "{\"level\":\"fatal\",\"msg\":\"the disk cannot read a page of a "
                             "mapped file; the server stops\",\"file\":\"";
    report.at = program ? ", offset " : "\",\"offset\":";
    report.help = program ? ": " : ",\"help\":\"";
    if (is_mirror)
        snprintf(report.remedy, sizeof(report.remedy),
                 "check the disk; then remove %s, which is loaded from the cluster again%s", dir,
                 end);
    else
        snprintf(report.remedy, sizeof(report.remedy),
                 "check the disk, and whether a program has shortened the file; vigil salvage %s "
                 "--to NEW copies everything that can be read into a new directory, which is best "
                 "on another disk%s",
                 dir, end);
    snprintf(report.bad_start, sizeof(report.bad_start),
             "{\"level\":\"fatal\",\"msg\":\"cannot start\",\"error\":\"most likely the checkpoint "
             "is damaged, %s/meta/data.mdb; check the disk, then run vigil repair --data-dir %s, "
             "which shows what would be lost and changes nothing, or restore a backup or a "
             "snapshot\"}\n",
             dir, dir);
    struct sigaction action = {.sa_sigaction = on_bus_error,
                               .sa_flags = (int)(SA_SIGINFO | SA_RESETHAND)};
    sigaction(SIGBUS, &action, NULL);
}

static const int start_faults[] = {SIGSEGV, SIGABRT};
static struct sigaction before[COUNT_OF(start_faults)];

void page_fault_guard(void)
{
    struct sigaction action = {.sa_handler = on_start_fault, .sa_flags = (int)SA_RESETHAND};
    for (size_t i = 0; i < COUNT_OF(start_faults); i++)
        sigaction(start_faults[i], &action, &before[i]);
}

void page_fault_unguard(void)
{
    for (size_t i = 0; i < COUNT_OF(start_faults); i++)
        sigaction(start_faults[i], &before[i], NULL);
}
