/*
 * The model of users and roles while they change. Room a belongs to alice, room b only while her
 * role has the permission for it, and room c only while she has the role of guests. Bob has the
 * first role, too, if there is a bob.
 *
 * While such a change is under way, and after one without an answer, both answers are right.
 */
#ifndef VIGIL_TESTS_SIM_RIGHTS_H
#define VIGIL_TESTS_SIM_RIGHTS_H

#include <stdbool.h>
#include <stdint.h>

#include <vigil/vigil.h>

enum right {
    RIGHT_ROOM_B, /* alice's role has the permission for room b */
    RIGHT_ROOM_C, /* alice has the role of guests */
    RIGHT_BOB,    /* there is a bob */
    RIGHT_ALWAYS,
    RIGHT_NEVER,
    RIGHT_EITHER, /* it depends on what the model does not know */
};

/* Sets up users and roles, and enables authentication. Inside an actor. */
void rights_begin(vigil_client *client);
/* Grants or revokes one of them, unless another client is at it. Inside an actor, as root. */
void rights_change(vigil_client *root, enum right right);

/* The right that a request of this user for these keys needs. */
enum right rights_for(const char *user, const char *key, const char *end);

/* A request begins, and ends. */
struct rights_view {
    enum right right;
    uint64_t generation;
};
/* lag_ns: it may be answered by what was right so long ago. */
struct rights_view rights_look(enum right right, int64_t lag_ns);
/* Whether it had the right, or not, all the time. Neither: it is not known. */
bool rights_granted(const struct rights_view *view);
bool rights_refused(const struct rights_view *view);

#endif
