/*
 * Users of the watch tier (tier.h), and the model of what they may do: ann gets the right to read
 * ConfigMaps, and loses it, while she and others work; dan's token expires. An answer is judged
 * only if the right was the same all the time, and for longer than the tier may use what it knows.
 */
#ifndef VIGIL_TESTS_SIM_TIER_USERS_H
#define VIGIL_TESTS_SIM_TIER_USERS_H

#include <stdbool.h>
#include <stdint.h>

#include <vigil/kube.h>

enum tier_user { TIER_ROOT, TIER_ANN, TIER_EVE, TIER_DAN, TIER_USERS };

/* Their clients. Inside an actor, while nothing is wrong yet. has_replica: a server that may be old
 * judges ann's right, so that it is not known when an answer must be of the new one. */
void tier_users_begin(bool has_replica);
void tier_users_end(void);
vigil_kube *tier_users_kube(enum tier_user user);
const char *tier_user_name(enum tier_user user);
/* Root's client of the server behind the tier. */
vigil_kube *tier_users_behind(void);

/* Grants or revokes ann's right, unless another actor is at it. Inside an actor. */
void tier_users_change(void);
/* Nothing is wrong any more: her right is revoked, or granted. Inside an actor. */
void tier_users_set(bool granted);

/* Dan's token expires. False: it has expired before. */
bool tier_users_expire(void);

/* Nothing is wrong: creates a ConfigMap without the tier. Inside an actor. */
void tier_users_create(const char *name);

/* A request begins. */
struct tier_judgement {
    enum tier_user user;
    bool granted, known;
    uint64_t generation;
};
struct tier_judgement tier_users_look(enum tier_user user);
/* Whether the user had the right all the time since, or never. Neither: it is not known. */
bool tier_users_had(const struct tier_judgement *judgement);
bool tier_users_lacked(const struct tier_judgement *judgement);

/* It was answered (0), or refused with a status code of HTTP; -1: neither. */
void tier_users_judge(const struct tier_judgement *judgement, int code, const char *what);

#endif
