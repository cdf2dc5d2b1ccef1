/* The watch tier (tier/face/face.h) as the face of a server (server/face.h). */
#ifndef VIGIL_CMD_SERVE_TIER_H
#define VIGIL_CMD_SERVE_TIER_H

#include "cmd/serve/config/config_tier.h"
#include "server/face.h"

struct serve_tier {
    struct server_face face; /* for server_config */
    struct tier_options options;
    struct tier *tier; /* owned; while the face is open */
};

/* Borrows the config. */
void serve_tier_init(struct serve_tier *tier, const struct config_tier *config);

#endif
