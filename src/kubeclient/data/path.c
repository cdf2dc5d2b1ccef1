#include "kubeclient/data/path.h"

static bool read_quoted(const char **at, struct path_step *ret_step)
{
    const char *from = *at + 2, *end = strstr(from, "']");
    if (!end)
        return false;
    *ret_step = (struct path_step){PATH_QUOTED, .key = slice_of(from, (size_t)(end - from))};
    *at = end + 2;
    return true;
}

static bool read_index(const char **at, struct path_step *ret_step)
{
    size_t index = 0, digits = 0;
    const char *p = *at + 1;
    for (; *p >= '0' && *p <= '9' && digits < 9; p++, digits++)
        index = index * 10 + (size_t)(*p - '0');
    if (digits == 0 || *p != ']')
        return false;
    *ret_step = (struct path_step){PATH_INDEX, .index = index};
    *at = p + 1;
    return true;
}

bool path_next(const char **at, bool first, struct path_step *ret_step)
{
    if ((*at)[0] == '[')
        return (*at)[1] == '\'' ? read_quoted(at, ret_step) : read_index(at, ret_step);
    if (!first && *(*at)++ != '.')
        return false;
    size_t len = strcspn(*at, ".[");
    *ret_step = (struct path_step){PATH_KEY, .key = slice_of(*at, len)};
    *at += len;
    return len > 0;
}
