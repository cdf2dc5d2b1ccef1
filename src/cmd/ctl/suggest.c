#include "cmd/ctl/suggest.h"

#include "cmd/ctl/find.h"

#include <ctype.h>
#include <strings.h>

enum { CHANGES_MAX = 2, NAME_BYTES_MAX = 32 };

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* From the distances of i letters of the word to the beginnings of the name to those of i + 1. */
static void next_row(unsigned *row, unsigned i, int letter, struct slice name)
{
    unsigned diagonal = row[0];
    row[0] = i + 1;
    for (size_t k = 1; k <= name.len; k++) {
        unsigned replaced = diagonal + (letter != name.ptr[k - 1]);
        diagonal = row[k];
        row[k] = least(replaced, least(row[k], row[k - 1]) + 1);
    }
}

/* How many letters have to be inserted, removed or replaced (Levenshtein's distance). */
static unsigned changes(const char *word, size_t len, struct slice name)
{
    unsigned row[NAME_BYTES_MAX + 1];
    for (size_t k = 0; k <= name.len; k++)
        row[k] = (unsigned)k;
    for (size_t i = 0; i < len; i++)
        next_row(row, (unsigned)i, tolower((unsigned char)word[i]), name);
    return row[name.len];
}

bool ctl_resembles(const char *word, struct slice name)
{
    assert(name.len <= NAME_BYTES_MAX);
    size_t len = strlen(word);
    if (len > name.len + CHANGES_MAX)
        return false;
    return (len <= name.len && strncasecmp(word, (const char *)name.ptr, len) == 0) ||
           changes(word, len, name) <= CHANGES_MAX;
}

/* The order in which etcdctl has them. */
static const char *const etcdctl_names[] = {
    "get",    "put",      "del",         "txn",        "compaction", "alarm",
    "defrag", "endpoint", "move-leader", "watch",      "version",    "lease",
    "member", "snapshot", "make-mirror", "lock",       "elect",      "auth",
    "user",   "role",     "check",       "completion", "downgrade",  "options",
};

static bool is_known(const char *name, enum ctl_style style)
{
    if (strcmp(name, "options") == 0)
        return style != CTL_ETCDCTL_3_4;
    char *args[] = {(char *)(uintptr_t)name};
    struct ctl_found found = ctl_find(1, args, style);
    return found.command || found.family;
}

/* The name at a place of the list of this style; one of length 0 is to be skipped. NULL: none. */
static const char *name_at(size_t place, enum ctl_style style, struct slice *ret_name)
{
    if (style == CTL_VIGIL) {
        const struct ctl_command *command = ctl_command_at(place);
        const struct ctl_command *before = place ? ctl_command_at(place - 1) : NULL;
        if (!command)
            return NULL;
        size_t len = strcspn(command->path, " ");
        bool is_new = !before || strncmp(before->path, command->path, len + 1) != 0;
        *ret_name = slice_of(command->path, is_new && ctl_exists(command, style) ? len : 0);
        return command->path;
    }
    if (place >= COUNT_OF(etcdctl_names))
        return NULL;
    *ret_name = slice_from_text(is_known(etcdctl_names[place], style) ? etcdctl_names[place] : "");
    return etcdctl_names[place];
}

/* What other programs call it. Not for etcdctl, which does not suggest them. */
static const struct {
    const char *word, *name;
} other_words[] = {
    {"ls", "tree"},
    {"ls", "get --prefix --keys-only"},
    {"list", "tree"},
    {"list", "get --prefix --keys-only"},
    {"keys", "get --prefix --keys-only"},
    {"dir", "tree"},
    {"rm", "del"},
    {"remove", "del"},
    {"delete", "del"},
    {"set", "put"},
    {"create", "put"},
    {"write", "put"},
    {"cat", "get"},
    {"read", "get"},
    {"show", "get"},
    {"follow", "watch"},
    {"status", "endpoint status"},
    {"health", "doctor"},
    {"backup", "snapshot save"},
    {"dump", "snapshot save"},
};

static bool has_name(const struct slice *names, size_t count, struct slice name)
{
    for (size_t i = 0; i < count; i++)
        if (slice_equal(names[i], name))
            return true;
    return false;
}

size_t ctl_suggest(const char *word, enum ctl_style style, struct slice *ret_names)
{
    size_t count = 0;
    struct slice name;
    for (size_t i = 0; i < COUNT_OF(other_words) && style == CTL_VIGIL; i++)
        if (strcasecmp(word, other_words[i].word) == 0)
            ret_names[count++] = slice_from_text(other_words[i].name);
    for (size_t i = 0; name_at(i, style, &name) && count < CTL_SUGGESTIONS_MAX; i++)
        if (name.len && ctl_resembles(word, name) && !has_name(ret_names, count, name))
            ret_names[count++] = name;
    return count;
}
