/* What the sources of tier_rights share. */
#ifndef VIGIL_TIER_RIGHTS_RIGHTS_PRIVATE_H
#define VIGIL_TIER_RIGHTS_RIGHTS_PRIVATE_H

#include "tier/rights/known.h"
#include "tier/rights/readiness.h"
#include "tier/rights/rights.h"

struct metric_block;

enum {
    TIER_TOLD_PER_TURN = 100,              /* waiters or watches that know an answer in one turn */
    TIER_ARENA_BYTES_MAX = 8 << 20,        /* for work on one question or answer */
    TIER_REFUSED_MAX = TIER_USERS_MAX / 4, /* tokens that are known not to be valid */
    TIER_CHANGES_IN = 1024,
};
/* Until a standing right without an answer is reviewed again. */
#define TIER_SOON_NS (5 * NS_PER_S)

/* Who takes turns: the first byte of a key in the line. */
enum { TIER_KEY_OF_USER = 'u', TIER_KEY_OF_ADDRESS = 'a' };

enum { TIER_OF_TOKENS, TIER_OF_RIGHTS, TIER_KINDS };

struct tier_rights {
    struct tier_rights_options options;
    struct loop *loop;
    struct random random;
    struct tier_line line;
    struct tier_readiness readiness;
    struct tier_user *anonymous;

    struct hash_map tokens;  /* struct tier_token, owned */
    struct list kept_tokens; /* the oldest answer first */
    struct list known;       /* the least recently used first */
    struct list refused;     /* the same */
    size_t refused_count;
    struct hash_map rights;  /* struct tier_right, owned */
    struct list kept_rights; /* the oldest answer first */
    size_t kept_bytes;       /* users and reasons in answers */
    struct timer expiry;     /* forgets what is too old */
    uint64_t changes;        /* how often roles of the cluster have changed */
    /* The same of roles in a namespace, by a hash of its name: those of several count together. */
    uint64_t changes_in[TIER_CHANGES_IN];
    struct list news; /* tier_news.in_rights */
    struct deferred tell;

    struct tier_rounds standing; /* all rights that stand */
    struct hash_map namespaces;  /* struct tier_namespace, owned: those in which rights stand */
    size_t standing_bytes;
    size_t watches;     /* tier_standing */
    struct list losses; /* tier_loss.in_rights */
    struct deferred lose;

    const struct metric_set *metric_set;
    struct metric_set *own_metrics; /* owned; may be NULL */
    struct metric_block *metrics;
    int64_t logged_ns[TIER_KINDS]; /* when a failure was logged; 0: never */
};

/* -- rights.c -- */

MUST_CHECK
enum status tier_digest(struct slice a, struct slice b, uint8_t ret_id[TIER_ID_BYTES]);
/* The answer to a question of asked_ns may be used for a request of since_ns. */
bool tier_is_fresh(const struct tier_rights *rights, int64_t asked_ns, int64_t since_ns);
/* The bytes of answers have changed: the oldest are forgotten. */
void tier_keep(struct tier_rights *rights, size_t more, size_t less);
/* The next turn is for some of the waiters. */
void tier_tell_later(struct tier_rights *rights, struct tier_news *news);
void tier_count_hit(struct tier_rights *rights, int kind);
/* A review was answered with this verdict. */
void tier_count_verdict(struct tier_rights *rights, int kind, enum tier_verdict verdict);
void tier_count_standing(struct tier_rights *rights);
/* Why there is no answer: 429, 500 or 503. What an administrator has to do is logged now and then.
 */
void tier_unanswered(struct tier_rights *rights, int kind, const struct tier_ask_answer *answer,
                     const char *garbage, struct kube_status *status);
void tier_not_answered(struct kube_status *status, int kind); /* without a reason */
/* The same if it could not be asked: ST_NOMEM, ST_REQUEST_TOO_MANY_REQUESTS. */
void tier_not_asked(struct kube_status *status, enum status why);

/* -- identify.c -- */

struct slice tier_token_key(const void *value);
/* That of a user who has one. Nothing may need it yet: the caller adds to its duty or releases it.
 * NULL: there is no memory or room. */
struct tier_token *tier_token_of(struct tier_rights *rights, const struct tier_user *user);
/* Its answer is not used any more. It may be freed. */
void tier_token_forget(struct tier_token *token);
/* Frees it, or what it does not need, unless something needs it. */
void tier_token_release(struct tier_token *token);
void tier_token_ask_later(struct tier_token *token);
/* Tells some of the waiters of its news. It may be freed. */
void tier_token_tell(struct tier_token *token);
/* When everything ends: the map still has it. */
void tier_token_destroy(struct tier_token *token);

/* -- may.c -- */

struct slice tier_right_key(const void *value);
/* Nothing may need it yet: the caller adds to its duty or releases it. ST_NOMEM; ST_LIMIT: there
 * is no room. */
MUST_CHECK
enum status tier_right_of(struct tier_rights *rights, struct tier_user *user,
                          const struct tier_access *access, struct tier_right **ret_right);
void tier_right_forget(struct tier_right *right);
void tier_right_release(struct tier_right *right);
void tier_right_ask_later(struct tier_right *right);
void tier_right_tell(struct tier_right *right);
void tier_right_destroy(struct tier_right *right);

/* -- rounds.c -- */

/* Grows with every change that may concern answers about this namespace; empty: those about all
 * namespaces, or none, which roles in a namespace never permit. */
uint64_t tier_rights_changes(const struct tier_rights *rights, struct slice namespace);
void tier_rounds_init(struct tier_rights *rights);
void tier_rounds_fini(struct tier_rights *rights); /* nothing stands */
/* The right stands. ST_NOMEM. */
MUST_CHECK
enum status tier_rounds_join(struct tier_right *right);
void tier_rounds_leave(struct tier_right *right);
void tier_rounds_check(const struct tier_rights *rights);

/* -- standing.c -- */

/* A round includes it: it is reviewed, and no answer to an earlier question confirms it. */
void tier_right_include(struct tier_right *right);

void tier_duty_init(struct tier_duty *duty, bool of_token);
/* A running watch needs it, or does not know yet that it is lost. */
bool tier_duty_exists(const struct tier_duty *duty);
/* A review was answered: running watches continue, or are lost. */
void tier_token_judge(struct tier_token *token, enum tier_verdict verdict);
void tier_right_judge(struct tier_right *right, enum tier_verdict verdict);
void tier_standing_init(struct tier_rights *rights);
void tier_standing_fini(struct tier_rights *rights);
void tier_standing_check(const struct tier_rights *rights);

#endif
