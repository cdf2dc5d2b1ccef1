#include "plants.h"

#include <string.h>

enum plant plant_now;

static const char *const names[PLANTS] = {
    [PLANT_NONE] = "none",
    [PLANT_NO_SYNC] = "no-sync",
    [PLANT_NO_SYNC_DIR] = "no-sync-dir",
};

enum plant plant_named(const char *name)
{
    enum plant plant = PLANT_NONE;
    while (plant < PLANTS && strcmp(names[plant], name) != 0)
        plant++;
    return plant;
}

const char *plant_name(enum plant plant)
{
    return names[plant];
}
