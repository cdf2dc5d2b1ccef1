/*
 * The engine behind a face (server/face.h): a mirror that is empty at every start, in the data
 * directory, and of which nothing is left at the end.
 */
#ifndef VIGIL_SERVER_EMPTY_MIRROR_H
#define VIGIL_SERVER_EMPTY_MIRROR_H

#include "base/error.h"
#include "engine/local/state/options.h"

struct engine;
struct empty_mirror;

/* Throws away what an earlier run has left. Other data in the directory are refused. */
MUST_CHECK
enum status empty_mirror_open(const struct engine_local_options *options,
                              struct empty_mirror **ret_mirror, struct error *error);
struct engine *empty_mirror_engine(struct empty_mirror *mirror);
/* The shards were freed. Accepts NULL. */
void empty_mirror_close(struct empty_mirror *mirror);

#endif
