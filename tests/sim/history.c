#include "history.h"

#include "actors.h"
#include "base/xalloc.h"
#include "trace.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KEYS_MAX = 256 };

static struct {
    struct version *changes; /* owned; in order */
    size_t count, room;
    int64_t revision;
    char keys[KEYS_MAX][KEY_BYTES]; /* sorted */
    size_t key_count;
} history;

_Noreturn void violation(const char *format, ...)
{
    va_list args;
    printf("VIOLATION at %.6f s: ", (double)actors_now() / 1e9);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
    fflush(stdout);
    _exit(VIOLATION);
}

void version_set_key(struct version *version, const void *bytes, size_t len)
{
    assert(len < KEY_BYTES);
    snprintf(version->key, KEY_BYTES, "%.*s", (int)len, (const char *)bytes);
}

/* Not the checksum of the log, which a planted bug weakens. */
static uint32_t hash(const uint8_t *bytes, size_t len)
{
    uint32_t hash = 0x811c9dc5;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ bytes[i]) * 0x01000193;
    return hash;
}

static char group_of(const void *bytes, size_t len)
{
    static const char label[] = "\"labels\":{\"group\":\"";
    const char *found = len ? memmem(bytes, len, label, strlen(label)) : NULL;
    size_t at = found ? (size_t)(found - (const char *)bytes) + strlen(label) : len;
    return at < len ? ((const char *)bytes)[at] : 0;
}

void version_set_value(struct version *version, const void *bytes, size_t len)
{
    enum { BEGIN = 16 };
    version->group = group_of(bytes, len);
    if (len < VALUE_BYTES)
        snprintf(version->value, VALUE_BYTES, "%.*s", (int)len, (const char *)bytes);
    else
        snprintf(version->value, VALUE_BYTES, "%.*s#%08x", BEGIN, (const char *)bytes,
                 hash(bytes, len));
}

void history_begin(void)
{
    free(history.changes);
    memset(&history, 0, sizeof(history));
    history.revision = 1;
}

void history_end(void)
{
    free(history.changes);
    history.changes = NULL;
}

static void add_key(const char *key)
{
    size_t at = 0;
    while (at < history.key_count && strcmp(history.keys[at], key) < 0)
        at++;
    if (at < history.key_count && strcmp(history.keys[at], key) == 0)
        return;
    assert(history.key_count < KEYS_MAX);
    memmove(history.keys[at + 1], history.keys[at], (history.key_count - at) * KEY_BYTES);
    memcpy(history.keys[at], key, KEY_BYTES);
    history.key_count++;
}

static void complete(struct version *change)
{
    const struct version *before = history_get(change->key, change->revision);
    bool deleted = change->number == 0;
    if (before && before->revision == change->revision)
        violation("%s has two changes in revision %lld", change->key, (long long)change->revision);
    if (deleted && !before)
        violation("%s is deleted in revision %lld, but did not exist", change->key,
                  (long long)change->revision);
    struct version made = *change;
    if (!deleted) {
        made.created = before ? before->created : change->revision;
        made.number = before ? before->number + 1 : 1;
    }
    if (!deleted && (made.created != change->created || made.number != change->number))
        violation("%s in revision %lld: created %lld version %lld, expected %lld and %lld",
                  change->key, (long long)change->revision, (long long)change->created,
                  (long long)change->number, (long long)made.created, (long long)made.number);
    *change = made;
}

void history_add(const struct version *change)
{
    struct version made = *change;
    if (change->revision != history.revision && change->revision != history.revision + 1)
        violation("a watch of all keys has revision %lld after %lld", (long long)change->revision,
                  (long long)history.revision);
    complete(&made);
    if (history.count == history.room) {
        history.room = history.room ? 2 * history.room : 256;
        history.changes = xrealloc(history.changes, history.room * sizeof(*history.changes));
    }
    add_key(made.key);
    history.changes[history.count++] = made;
    history.revision = made.revision;
}

int64_t history_revision(void)
{
    return history.revision;
}

size_t history_count(void)
{
    return history.count;
}

const struct version *history_at(size_t i)
{
    return &history.changes[i];
}

const struct version *history_get(const char *key, int64_t revision)
{
    for (size_t i = history.count; i-- > 0;) {
        const struct version *change = &history.changes[i];
        if (change->revision <= revision && strcmp(change->key, key) == 0)
            return change->number ? change : NULL;
    }
    return NULL;
}

bool range_has(const char *key, const char *end, const char *candidate)
{
    if (!*end)
        return strcmp(key, candidate) == 0;
    return strcmp(key, candidate) <= 0 && strcmp(candidate, end) < 0;
}

size_t history_range(const char *key, const char *end, int64_t revision,
                     const struct version *ret_versions[RANGE_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < history.key_count; i++) {
        if (!range_has(key, end, history.keys[i]))
            continue;
        const struct version *version = history_get(history.keys[i], revision);
        if (version)
            ret_versions[count++] = version;
    }
    return count;
}
