/*
 * What clients asked of a server and what it acknowledged, as load.go has written it: one request
 * per line, words with spaces between. Numbers after the kind are always the position in the
 * recording before the request was sent and the one after it was answered; 0 as the second one: the
 * request has failed, and it is unknown whether it was executed.
 *
 *   change SENT ANSWERED REVISION COUNT { put KEY BYTES CRC32C LEASE | delete KEY }…
 *   compact SENT ANSWERED REVISION
 *   row SENT ANSWERED TABLE KEY EXISTS REVISION
 *   hash SENT ANSWERED REVISION COMPACTED HASH
 *
 * Every revision is one request, so each request names all that changed at its revision. A
 * row with a revision is in the same record as that change.
 */
#ifndef VIGIL_TESTS_POWER_HISTORY_H
#define VIGIL_TESTS_POWER_HISTORY_H

#include "base/error.h"
#include "base/slice.h"

enum { HISTORY_KEY_BYTES = 64 };

struct version {
    char key[HISTORY_KEY_BYTES];
    bool deleted;
    uint32_t value_bytes, value_crc;
    int64_t lease;
    int64_t revision, create_revision, version; /* from history_settle */
};

/* A request that changed keys: versions[first] to versions[first + count - 1], sorted by key. */
struct change {
    uint64_t sent, answered;
    int64_t revision; /* 0: not known */
    size_t first, count;
};

struct compaction {
    uint64_t sent, answered;
    int64_t revision;
};

struct row_change {
    uint64_t sent, answered;
    int table;
    char key[HISTORY_KEY_BYTES];
    bool exists;
    int64_t revision;
};

struct hash_answer {
    uint64_t sent, answered;
    int64_t revision, compacted;
    uint32_t hash;
};

struct history {
    struct version *versions;
    struct change *changes;
    struct compaction *compactions;
    struct row_change *rows; /* changes of one row, in the order in which they were asked for */
    struct hash_answer *hashes;
    size_t version_count, change_count, compaction_count, row_count, hash_count;

    /* From history_settle. */
    const struct change **by_revision; /* NULL: not known */
    int64_t revision_max;
    const struct version **by_key; /* versions of known revisions, by key and then revision */
    size_t by_key_count;
};

MUST_CHECK
enum status history_load(struct history *history, const char *path, struct error *ret_error);
/* Again after the revision of a change has become known. */
void history_settle(struct history *history);
/* NULL if it is not known, or above all. */
const struct change *history_change(const struct history *history, int64_t revision);

/* What must be there after a power failure at a position, at least. */
int64_t history_revision_due(const struct history *history, uint64_t position);
int64_t history_compaction_due(const struct history *history, uint64_t position); /* -1: none */
/* Whether a compaction to a revision was requested before a position. */
bool history_was_compacted_to(const struct history *history, int64_t revision, uint64_t position);

#endif
