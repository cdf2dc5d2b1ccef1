/* The part of the configuration that says in front of which etcd cluster the server is. */
#ifndef VIGIL_CMD_SERVE_CONFIG_CONFIG_UPSTREAM_H
#define VIGIL_CMD_SERVE_CONFIG_CONFIG_UPSTREAM_H

#include "base/memory/arena.h"
#include "cmd/serve/options/options.h"
#include "mirror/link/options.h"
#include "net/url.h"

/* Whether all keys with this prefix are mirrored, or there is no cluster. */
bool config_upstream_mirrors(const struct serve_options *options, struct slice prefix);
/* Reads the password file. What is set is borrowed from the arena and the options. Nothing is set
 * without --upstream-endpoints. */
MUST_CHECK
enum status config_upstream_set(struct mirror_options *cluster, struct arena *arena,
                                const struct serve_options *options, struct error *error);

/*
 * Flags that contradict each other: those of a server that stores data, in front of a cluster, and
 * --upstream flags without a cluster. Logs which are ignored, and fails for one whose effect its
 * user relies on.
 */
MUST_CHECK
enum status config_upstream_check_flags(const struct options *options, bool clustered,
                                        struct error *error);
/* A variable for --upstream-endpoints or --upstream-kubeconfig that is empty is a mistake: the
 * server would store data of its own. variables: NULL if they are not used. */
MUST_CHECK
enum status config_upstream_check_variables(const struct options *options, char *const *variables,
                                            struct error *error);
/* None of the endpoints may be an address on which the server listens itself. Names are not looked
 * up; what they hide is found once the server runs (mirror/link/loop_guard.h). */
MUST_CHECK
enum status config_upstream_check_addresses(const char *flag, const char *endpoints,
                                            const struct url *listen, size_t count,
                                            struct error *error);

#endif
