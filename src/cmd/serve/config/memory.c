#include "cmd/serve/config/memory.h"

#include "base/slice.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, LINE_BYTES = 4096 };

#define CLIENT_BYTES_MAX ((size_t)1 << 30)
#define CLIENT_BYTES_MIN ((size_t)4 << 20) /* the minimum of the flag */

/* The number in a file; SIZE_MAX when the file is missing or says "max". */
static size_t number_in(const char *path)
{
    char text[64];
    FILE *file = fopen(path, "re");
    if (!file)
        return SIZE_MAX;
    bool got = fgets(text, sizeof(text), file) != NULL;
    fclose(file);
    char *end = text;
    unsigned long long number = got ? strtoull(text, &end, 10) : 0;
    return end != text && number > 0 ? (size_t)number : SIZE_MAX;
}

/* The smallest limit of a group and its ancestors. Shortens `group` on the way. */
static size_t least_of(const char *root, const char *mount, char *group, const char *file)
{
    size_t least = SIZE_MAX;
    for (;;) {
        char path[PATH_BYTES];
        int len = snprintf(path, sizeof(path), "%s%s%s/%s", root, mount, group, file);
        if (len > 0 && (size_t)len < sizeof(path))
            least = size_min(least, number_in(path));
        char *slash = strrchr(group, '/');
        /* The last round has looked at the mount point itself. In a container it shows the limit of
         * the container. */
        if (!slash)
            return least;
        *slash = '\0';
    }
}

/* A line of /proc/self/cgroup: "0::/group" of version 2, "4:memory:/group" of version 1. */
static size_t limit_of_line(const char *root, char *line)
{
    line[strcspn(line, "\n")] = '\0';
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group)
        return SIZE_MAX;
    *group++ = '\0';
    controllers++;
    if (group[0] == '/' && group[1] == '\0')
        group++; /* the root group: its files are in the mount point itself */
    if (controllers[0] == '\0')
        return least_of(root, "/sys/fs/cgroup", group, "memory.max");
    char list[64];
    snprintf(list, sizeof(list), ",%.60s,", controllers);
    /* In version 1 every controller has a hierarchy of its own. */
    if (!strstr(list, ",memory,"))
        return SIZE_MAX;
    return least_of(root, "/sys/fs/cgroup/memory", group, "memory.limit_in_bytes");
}

size_t memory_bytes(const char *root, size_t machine_bytes)
{
    char path[PATH_BYTES], line[LINE_BYTES];
    size_t least = machine_bytes;
    snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof(line), file))
        least = size_min(least, limit_of_line(root, line));
    if (file)
        fclose(file);
    return least;
}

static size_t address_space(void)
{
    struct rlimit limit;
    bool limited = getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    return limited ? limit.rlim_cur : SIZE_MAX;
}

void memory_fit_address_space(void)
{
    /* Each arena of malloc reserves 64 MB of addresses. With one per thread a limited address space
     * is used up long before the memory is. */
    if (address_space() != SIZE_MAX)
        (void)mallopt(M_ARENA_MAX, 1);
}

size_t memory_bytes_here(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    bool known = pages > 0 && page_bytes > 0;
    size_t machine_bytes = known ? (size_t)pages * (size_t)page_bytes : SIZE_MAX;
    return memory_bytes("", size_min(machine_bytes, address_space()));
}

size_t memory_for_clients(size_t bytes)
{
    return size_max(size_min(bytes / 4, CLIENT_BYTES_MAX), CLIENT_BYTES_MIN);
}
