#include "cmd/serve/config/emulated_version.h"

#include <stdbool.h>
#include <string.h>

/* One to three digits. */
static bool take_number(const char **text, unsigned *ret_number)
{
    unsigned number = 0, digits = 0;
    for (; **text >= '0' && **text <= '9' && digits < 3; ++*text, digits++)
        number = number * 10 + (unsigned)(**text - '0');
    *ret_number = number;
    return digits > 0;
}

static bool take_dot(const char **text)
{
    bool found = **text == '.';
    *text += found;
    return found;
}

/* After `mark`, non-empty identifiers separated by dots; nothing when the mark is missing. */
static bool take_identifiers(const char **text, char mark)
{
    static const char letters[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-";
    if (**text != mark)
        return true;
    do {
        ++*text;
        size_t len = strspn(*text, letters);
        if (!len)
            return false;
        *text += len;
    } while (**text == '.');
    return true;
}

static bool take_version(const char **text, struct emulated_version *version)
{
    return take_number(text, &version->major) && take_dot(text) &&
           take_number(text, &version->minor) && take_dot(text) &&
           take_number(text, &version->patch) && take_identifiers(text, '-') &&
           take_identifiers(text, '+');
}

enum status emulated_version_read(const char *text, struct emulated_version *ret_version,
                                  struct error *error)
{
    struct emulated_version version;
    const char *rest = text;
    bool whole = strlen(text) <= EMULATED_VERSION_BYTES_MAX && take_version(&rest, &version);
    if (!whole || *rest || version.major != 3)
        return error_set(
            error, ST_INVALID,
            "--emulate-version: \"%.40s\" is not a version of etcd 3, such as 3.7.0 or "
            "3.8.0-rc.0",
            text);
    *ret_version = version;
    return ST_OK;
}
