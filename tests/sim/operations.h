/*
 * What clients asked and what they were answered. An operation is recorded when it begins and
 * completed with its answer. It is compared with the history (compare.h) as soon as the history has
 * the revision of the answer; what has no cause in the history is noticed when it appears there.
 */
#ifndef VIGIL_TESTS_SIM_OPERATIONS_H
#define VIGIL_TESTS_SIM_OPERATIONS_H

#include "history.h"
#include "rights.h"

/* Those of coverage.h have the same order. */
enum operation_kind {
    OPERATION_RANGE,
    OPERATION_PUT,
    OPERATION_DELETE,
    OPERATION_TXN, /* if key's mod_revision is `compared`: puts key = value, else: reads it */
    OPERATION_GRANT,
    OPERATION_REVOKE,
    OPERATION_COMPACT,
    OPERATION_LOCK, /* the answer's key is that of the owner */
};

#define LOCK_PREFIX "lock/"
#define LOCK_PREFIX_END "lock0"

enum answer_kind {
    ANSWER_NONE, /* it has not completed */
    ANSWER_OK,
    ANSWER_REFUSED, /* it has not been executed */
    ANSWER_UNKNOWN,
};

struct operation {
    enum operation_kind kind;
    unsigned client, number;
    int64_t begun_ns, ended_ns;
    int64_t floor; /* the newest revision that anybody had seen when it began */
    int64_t compacted_floor, compacted_ceiling; /* compactions that were done, and were wanted */
    struct rights_view rights;                  /* what it needs, and how that was then */
    bool forbidden;                             /* its user has no permission all the time */
    bool permitted;                             /* its user has it all the time */

    /* The request. */
    char key[KEY_BYTES], end[KEY_BYTES], value[VALUE_BYTES];
    int64_t revision; /* for a range or compaction; 0: the newest */
    int64_t limit;
    int64_t lease; /* lease of a put, or the lease itself */
    int64_t ttl;
    int64_t compared;
    bool previous; /* prev_kv is wanted */
    bool lags;     /* a server that learns of compactions a little later */
    /* For a transaction within the transaction, if there is one: puts this key if there is none,
     * and deletes it otherwise. */
    char inner_key[KEY_BYTES], inner_value[VALUE_BYTES];

    /* The answer. */
    enum answer_kind answer;
    int code; /* enum vigil_code */
    char text[64];
    int64_t header_revision;
    bool succeeded, inner_succeeded, more;
    int64_t count;            /* number of keys, or of deleted ones */
    struct version *versions; /* owned: keys that were read, or previous ones */
    size_t version_count;

    /* The revisions at which its values have appeared in the history; 0: not yet. */
    int64_t executed, inner_executed;
    bool checked; /* compared with the history */
};

#define OP_FORMAT "operation #%u (client %u, %s %s %s)"
#define OP_ARGS(op) \
    (op)->number, (op)->client, operation_kind_name((op)->kind), (op)->key, (op)->value
const char *operation_kind_name(enum operation_kind kind);

void operations_begin(void);
void operations_end(void);

/* A new one, with the time and the floors. The pointer is valid until operations_end. */
struct operation *operation_new(enum operation_kind kind, unsigned client);
/* The answer is filled in. */
void operation_done(struct operation *operation);
/* The server has refused it because stored bytes are damaged. */
bool operation_met_damage(const struct operation *operation);
/* The newest revision that anybody has seen. */
int64_t operations_seen(void);
void operations_see(int64_t revision);
void operations_want_compaction(int64_t revision);
int64_t operations_compacted_ceiling(void);
size_t operations_count(void);

/* A change was added to the history: a client must have wanted it. */
void operations_saw(const struct version *change);
/* Compares what has become decidable: answers up to the newest revision of the history. */
void operations_check_known(void);
/* The history is complete; or partial, because the data is damaged: what is newer is not checked.
 */
void operations_check(bool partial);

#endif
