/*
 * Watches of ConfigMaps through the watch tier: each has every change after its start once and in
 * order, through all its resumptions. One that ends is begun again where it was; one whose history
 * is gone (410) begins again with the state.
 */
#ifndef VIGIL_TESTS_SIM_TIER_WATCHES_H
#define VIGIL_TESTS_SIM_TIER_WATCHES_H

#include "base/random.h"
#include "tier_users.h"

void tier_watches_begin(void);
void tier_watches_end(void);

/* A watch of this user, of all that the seed may choose; or one in JSON that begins with the state.
 */
void tier_watches_add(enum tier_user user, bool with_state, struct random *random);
/* Now and then: those that have ended begin again, those that do not read continue. */
void tier_watches_tend(struct random *random);
void tier_watches_check_known(void);
/* The server has begun another history: those of the old one must end, and begin with the state.
 * Those at a version that the new one will have, too, are the same to it: they are freed.
 */
void tier_watches_lose(void);

/* All watches have all changes, and none has ended. */
bool tier_watches_have_arrived(void);
/* A watch of this user is running that was added with the state when nothing was wrong any more, so
 * that the mirror answers it. Others may have been passed on, also because a fence has failed
 * (429), and a kube-apiserver lets them continue. */
bool tier_watches_run(enum tier_user user);

#endif
