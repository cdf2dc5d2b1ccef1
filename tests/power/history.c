#include "history.h"

#include "base/xalloc.h"

#include <stdio.h>

#define GROW(array, count)                                                             \
    do {                                                                               \
        if (((count) & ((count)-1)) == 0)                                              \
            (array) = xrealloc((array), ((count) ? (count)*2 : 1) * sizeof(*(array))); \
    } while (0)

static int compare_names(const void *left, const void *right)
{
    const struct version *a = left, *b = right;
    return strcmp(a->key, b->key);
}

/* The next words, as numbers. */
static bool read_numbers(FILE *file, int64_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char word[32], *end;
        if (fscanf(file, "%31s", word) != 1)
            return false;
        numbers[i] = strtoll(word, &end, 10);
        if (*end)
            return false;
    }
    return true;
}

static bool read_version(struct history *history, FILE *file)
{
    struct version version = {0};
    char kind[16];
    int64_t put[3] = {0};
    if (fscanf(file, "%15s %63s", kind, version.key) != 2)
        return false;
    version.deleted = strcmp(kind, "delete") == 0;
    if (!version.deleted && !read_numbers(file, put, COUNT_OF(put)))
        return false;
    version.value_bytes = (uint32_t)put[0];
    version.value_crc = (uint32_t)put[1];
    version.lease = put[2];
    GROW(history->versions, history->version_count);
    history->versions[history->version_count++] = version;
    return true;
}

static bool read_change(struct history *history, FILE *file, uint64_t sent, uint64_t answered)
{
    int64_t words[2];
    if (!read_numbers(file, words, COUNT_OF(words)))
        return false;
    struct change change = {sent, answered, words[0], history->version_count, (size_t)words[1]};
    for (size_t i = 0; i < change.count; i++) {
        if (!read_version(history, file))
            return false;
    }
    qsort(&history->versions[change.first], change.count, sizeof(struct version), compare_names);
    GROW(history->changes, history->change_count);
    history->changes[history->change_count++] = change;
    return true;
}

static bool read_row(struct history *history, FILE *file, uint64_t sent, uint64_t answered)
{
    struct row_change row = {.sent = sent, .answered = answered};
    int64_t table, rest[2];
    if (!read_numbers(file, &table, 1) || fscanf(file, "%63s", row.key) != 1 ||
        !read_numbers(file, rest, COUNT_OF(rest)))
        return false;
    row.table = (int)table;
    row.exists = rest[0];
    row.revision = rest[1];
    GROW(history->rows, history->row_count);
    history->rows[history->row_count++] = row;
    return true;
}

static bool read_compaction(struct history *history, FILE *file, uint64_t sent, uint64_t answered)
{
    struct compaction compaction = {sent, answered, 0};
    if (!read_numbers(file, &compaction.revision, 1))
        return false;
    GROW(history->compactions, history->compaction_count);
    history->compactions[history->compaction_count++] = compaction;
    return true;
}

static bool read_hash(struct history *history, FILE *file, uint64_t sent, uint64_t answered)
{
    int64_t words[3];
    if (!read_numbers(file, words, COUNT_OF(words)))
        return false;
    GROW(history->hashes, history->hash_count);
    history->hashes[history->hash_count++] =
        (struct hash_answer){sent, answered, words[0], words[1], (uint32_t)words[2]};
    return true;
}

static bool read_line(struct history *history, FILE *file, const char *kind)
{
    int64_t positions[2];
    if (!read_numbers(file, positions, COUNT_OF(positions)))
        return false;
    uint64_t sent = (uint64_t)positions[0], answered = (uint64_t)positions[1];
    if (strcmp(kind, "change") == 0)
        return read_change(history, file, sent, answered);
    if (strcmp(kind, "row") == 0)
        return read_row(history, file, sent, answered);
    if (strcmp(kind, "compact") == 0)
        return read_compaction(history, file, sent, answered);
    return strcmp(kind, "hash") == 0 && read_hash(history, file, sent, answered);
}

enum status history_load(struct history *history, const char *path, struct error *ret_error)
{
    *history = (struct history){0};
    FILE *file = fopen(path, "re");
    if (!file)
        return error_set(ret_error, ST_NOT_FOUND, "cannot open %s", path);
    char kind[16];
    bool good = true;
    while (good && fscanf(file, "%15s", kind) == 1)
        good = read_line(history, file, kind);
    fclose(file);
    if (!good)
        return error_set(ret_error, ST_INVALID, "%s: cannot read a line of kind %s", path, kind);
    history_settle(history);
    return ST_OK;
}

static int compare_versions(const void *left, const void *right)
{
    const struct version *a = *(const struct version *const *)left;
    const struct version *b = *(const struct version *const *)right;
    int keys = strcmp(a->key, b->key);
    return keys ? keys : a->revision < b->revision ? -1 : a->revision > b->revision;
}

static void number_versions(struct history *history)
{
    for (size_t i = 0; i < history->by_key_count; i++) {
        struct version *version = (struct version *)(uintptr_t)history->by_key[i];
        const struct version *before = i ? history->by_key[i - 1] : NULL;
        bool existed = before && !before->deleted && strcmp(before->key, version->key) == 0;
        version->create_revision = existed ? before->create_revision : version->revision;
        version->version = existed ? before->version + 1 : 1;
    }
}

void history_settle(struct history *history)
{
    history->revision_max = 1;
    for (size_t i = 0; i < history->change_count; i++) {
        if (history->changes[i].revision > history->revision_max)
            history->revision_max = history->changes[i].revision;
    }
    free(history->by_revision);
    free(history->by_key);
    history->by_revision =
        xcalloc((size_t)history->revision_max + 1, sizeof(*history->by_revision));
    history->by_key = xcalloc(history->version_count + 1, sizeof(*history->by_key));
    history->by_key_count = 0;
    for (size_t i = 0; i < history->change_count; i++) {
        const struct change *change = &history->changes[i];
        if (!change->revision)
            continue;
        assert(!history->by_revision[change->revision]); /* answered with twice */
        history->by_revision[change->revision] = change;
        for (size_t n = change->first; n < change->first + change->count; n++) {
            history->versions[n].revision = change->revision;
            history->by_key[history->by_key_count++] = &history->versions[n];
        }
    }
    qsort(history->by_key, history->by_key_count, sizeof(*history->by_key), compare_versions);
    number_versions(history);
}

const struct change *history_change(const struct history *history, int64_t revision)
{
    return revision > 0 && revision <= history->revision_max ? history->by_revision[revision]
                                                             : NULL;
}

int64_t history_revision_due(const struct history *history, uint64_t position)
{
    int64_t due = 1;
    for (size_t i = 0; i < history->change_count; i++) {
        const struct change *change = &history->changes[i];
        if (change->answered && change->answered <= position && change->revision > due)
            due = change->revision;
    }
    return due;
}

int64_t history_compaction_due(const struct history *history, uint64_t position)
{
    int64_t due = -1;
    for (size_t i = 0; i < history->compaction_count; i++) {
        const struct compaction *compaction = &history->compactions[i];
        if (compaction->answered && compaction->answered <= position && compaction->revision > due)
            due = compaction->revision;
    }
    return due;
}

bool history_was_compacted_to(const struct history *history, int64_t revision, uint64_t position)
{
    for (size_t i = 0; i < history->compaction_count; i++) {
        const struct compaction *compaction = &history->compactions[i];
        if (compaction->revision == revision && compaction->sent <= position)
            return true;
    }
    return false;
}
