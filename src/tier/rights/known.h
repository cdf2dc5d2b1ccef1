/*
 * What is known of tokens and of users' rights, and what needs it.
 *
 *     tier_question ────► tier_token ─┐
 *                             ▲       ├──► tier_ask: the line, reviews
 *     tier_right_wait ──► tier_right ─┘
 *                             ▲
 *     tier_standing ──────────┘ (and the token of its user)
 *
 * Private to the sources of this directory.
 */
#ifndef VIGIL_TIER_RIGHTS_KNOWN_H
#define VIGIL_TIER_RIGHTS_KNOWN_H

#include "tier/rights/access.h"
#include "tier/rights/line.h"
#include "tier/rights/user.h"

struct tier_right;
struct tier_rights;

enum { TIER_ID_BYTES = TIER_TOKEN_ID_BYTES };

/* Standing rights that were lost, until their watches have been told. */
struct tier_loss {
    struct list in_rights; /* links rights.losses */
    struct list standings; /* tier_standing.in_right or .in_token */
    bool of_token;
    enum tier_verdict verdict;
};

/* Waiters whose question was answered, until they know it: those of later turns, if there are many.
 */
struct tier_news {
    struct list in_rights; /* links rights.news if there are waiters */
    struct list waiters;   /* tier_question or tier_right_wait: in_answer */
    bool of_token;
    enum tier_verdict verdict;
    struct tier_user *user; /* owned reference; for those of a valid token */
};

/* What running watches need of a token or right. */
struct tier_duty {
    struct list standings; /* tier_standing.in_right or .in_token */
    struct timer again;    /* set if there are any */
    int64_t due_ns;        /* since then an answer has been missing; 0: none is due */
    struct tier_loss loss;
};

/* Reviews of all rights that a change may concern, because a role or binding has changed: of all
 * that stand, or of those in one namespace. */
struct tier_rounds {
    struct tier_rights *rights;
    struct list members; /* tier_member.in_rounds, in the order of their rounds */
    size_t count;
    uint64_t round; /* how many there were */
    unsigned wanted;
    int64_t began_ns;     /* when the last one began */
    struct timer next;    /* begins the next one */
    struct deferred walk; /* asks for some that this round has not included yet */
};

/* A right with standing rights, in rounds. */
struct tier_member {
    struct list in_rounds; /* links rounds.members */
    struct tier_right *right;
    uint64_t round; /* the last one that has included it */
};

/* A namespace in which rights stand, found by its name. */
struct tier_namespace {
    struct tier_rounds rounds;
    size_t name_bytes;
    uint8_t name[];
};

/* What is known of one token, found by its digest. Freed when it is the least recently used one
 * and nothing needs it. */
struct tier_token {
    struct tier_rights *rights;
    uint8_t id[TIER_TOKEN_ID_BYTES];
    struct tier_ask ask;
    struct buf text;        /* the token, while something needs it; erased */
    struct buf key;         /* whose turn its question takes */
    bool known;             /* the key is that of a user, who has used it before */
    bool answered;          /* what is kept of the answer: */
    struct tier_user *user; /* owned reference; NULL: it is not valid */
    int64_t asked_ns;       /* when the question was sent */
    struct list waiters;    /* tier_question.in_answer */
    struct tier_news news;
    bool busy; /* waiters or watches are being told */
    struct tier_duty duty;
    bool doubted;        /* it was refused once since then */
    struct list in_kept; /* links rights.kept_tokens if it is answered */
    struct list in_used; /* links rights.known or .refused if nothing needs it */
};

/* What a question about a right consists of. One allocation. */
struct tier_wish {
    struct tier_access access; /* without selectors */
    struct slice attributes;   /* a member of the review */
    size_t bytes;
    uint8_t texts[];
};

/* What is known of one user and one access, found by their digest. */
struct tier_right {
    struct tier_rights *rights;
    uint8_t id[TIER_ID_BYTES];
    struct tier_ask ask;
    struct tier_user *user; /* owned reference, and */
    struct tier_wish *wish; /* owned: NULL unless something needs it */
    bool answered;          /* what is kept of the answer: */
    bool allowed;
    struct buf reason;      /* why it is refused */
    int64_t asked_ns;       /* when the question was sent */
    uint64_t asked_changes; /* tier_rights_changes at that time */
    uint64_t sent_changes;  /* the same of the question under way */
    struct list waiters;    /* tier_right_wait.in_answer */
    struct tier_news news;
    bool busy; /* waiters or watches are being told */
    struct tier_duty duty;
    int64_t doubted_ns;   /* it was denied then, for the first time since it was last allowed */
    uint64_t rounds;      /* that have included it */
    uint64_t sent_rounds; /* the same when the question under way was sent */
    struct list in_kept;  /* links rights.kept_rights if it is answered and nothing needs it */
    struct tier_member in_all, in_namespace; /* if it has standing rights */
    struct tier_namespace *namespace;        /* NULL: it is of no namespace, or does not stand */
};

#endif
