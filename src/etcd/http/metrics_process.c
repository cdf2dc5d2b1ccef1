/* Metrics about the process from /proc, with the names that Prometheus' client libraries use. */
#include "etcd/http/metrics.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

/* The whole of a small file of /proc as a text; empty when it cannot be read. */
static const char *read_text(const char *path, char *to, size_t room)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, to, room - 1);
    to[n > 0 ? n : 0] = '\0';
    if (fd >= 0)
        close(fd);
    return to;
}

static uint64_t open_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    uint64_t count = 0;
    if (!dir)
        return 0;
    for (const struct dirent *entry = readdir(dir); entry; entry = readdir(dir))
        count += entry->d_name[0] != '.';
    closedir(dir);
    return count - 1; /* without the descriptor of the directory */
}

static void write_fds(struct metric_page *page)
{
    struct rlimit limit = {0};
    uint64_t used = open_fds();
    int failed = getrlimit(RLIMIT_NOFILE, &limit);
    uint64_t most = failed ? 0 : limit.rlim_cur;
    metric_page_gauge(page, "process_open_fds", "Open file descriptors.", used);
    metric_page_gauge(page, "process_max_fds", "Limit of open file descriptors.", most);
    metric_page_gauge(page, "os_fd_used", "Open file descriptors.", used);
    metric_page_gauge(page, "os_fd_limit", "Limit of open file descriptors.", most);
}

/* The fields of /proc/self/stat, counted from 1 as its manual does. */
enum { STAT_USER = 14, STAT_SYSTEM = 15, STAT_START = 22, STAT_VIRTUAL = 23, STAT_RESIDENT = 24 };
enum { STAT_FIELDS = 25 };

static void read_stat(uint64_t fields[STAT_FIELDS])
{
    char text[1024];
    const char *at = strrchr(read_text("/proc/self/stat", text, sizeof(text)), ')');
    for (unsigned i = 3; at && i < STAT_FIELDS; i++) { /* the third follows the name */
        at = strchr(at, ' ');
        if (at)
            fields[i] = strtoull(++at, NULL, 10);
    }
}

static double boot_seconds(void)
{
    char text[16 * 1024];
    const char *at = strstr(read_text("/proc/stat", text, sizeof(text)), "\nbtime ");
    return at ? strtod(at + 7, NULL) : 0;
}

static void real_row(struct metric_page *page, const char *name, enum metric_kind kind,
                     const char *help, double value)
{
    metric_page_head(page, name, kind, help);
    metric_page_row_real(page, name, "", value);
}

void etcd_process_metrics_write(struct metric_page *page)
{
    uint64_t stat[STAT_FIELDS] = {0};
    double ticks = (double)sysconf(_SC_CLK_TCK);
    read_stat(stat);
    write_fds(page);
    real_row(page, "process_cpu_seconds_total", METRIC_COUNTER,
             "User and system processor time of the process.",
             (double)(stat[STAT_USER] + stat[STAT_SYSTEM]) / ticks);
    real_row(page, "process_start_time_seconds", METRIC_GAUGE,
             "Start time of the process, in seconds since 1970.",
             boot_seconds() + (double)stat[STAT_START] / ticks);
    metric_page_gauge(page, "process_resident_memory_bytes",
                      "Resident memory, including mapped parts of the log.",
                      stat[STAT_RESIDENT] * (uint64_t)sysconf(_SC_PAGESIZE));
    metric_page_gauge(page, "process_virtual_memory_bytes",
                      "Address space in use; most of it is reserved and empty.",
                      stat[STAT_VIRTUAL]);
    struct rlimit limit = {0};
    int failed = getrlimit(RLIMIT_AS, &limit);
    real_row(page, "process_virtual_memory_max_bytes", METRIC_GAUGE, "Limit of the address space.",
             failed ? 0 : (double)limit.rlim_cur);
}
