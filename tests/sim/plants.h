/*
 * Planted bugs: vigil_sim --plant=NAME breaks the server or the client in one place, which the
 * checks have to find. Each replaces a function when the program is linked; nothing of this is in
 * the server.
 */
#ifndef VIGIL_TESTS_SIM_PLANTS_H
#define VIGIL_TESTS_SIM_PLANTS_H

#include <stdbool.h>

enum plant {
    PLANT_NONE,
    PLANT_NO_SYNC,     /* the log is not synced before an answer */
    PLANT_NO_SYNC_DIR, /* new files are not synced into their directory */
    PLANTS
};

extern enum plant plant_now;

static inline bool plant_is(enum plant plant)
{
    return plant_now == plant;
}

/* PLANTS: there is no such plant. */
enum plant plant_named(const char *name);
const char *plant_name(enum plant plant);

#endif
