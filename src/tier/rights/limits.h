/* Limits of questions and answers, of one I/O thread. */
#ifndef VIGIL_TIER_RIGHTS_LIMITS_H
#define VIGIL_TIER_RIGHTS_LIMITS_H

#include "base/clock.h"

enum {
    TIER_REVIEWS_MAX = 64,          /* under way at a time … */
    TIER_USER_REVIEWS_MAX = 16,     /* … and of these, of one user */
    TIER_QUESTIONS_MAX = 16 * 1024, /* waiting, of all users */
    TIER_USER_QUESTIONS_MAX = 1024, /* waiting, of one user */
    TIER_USERS_MAX = 16 * 1024,     /* known at a time; the least recently used one is forgotten */
    TIER_ANSWERS_MAX = 256 * 1024,
    TIER_TOKEN_BYTES_MAX = 64 * 1024,
    TIER_QUESTION_BYTES_MAX = 64 << 20,     /* texts of questions that wait */
    TIER_USER_QUESTION_BYTES_MAX = 8 << 20, /* those of one user */
    TIER_STANDING_BYTES_MAX = 256 << 20,    /* what running watches need */
    TIER_KEPT_BYTES_MAX = 64 << 20,         /* users and reasons in answers */
};
#define TIER_ANSWER_NS (10 * NS_PER_S) /* a question waits so long at most */
/* How long a running watch continues while its review has no answer. A kube-apiserver that is
 * updated, or whose machine starts again, is back by then. */
#define TIER_PATIENCE_NS (300 * NS_PER_S)

#endif
