/*
 * The history of the fake engine: a model's versions, in order of revision. Copies everything it
 * hands out, and frees that when the turn ends, so that a sanitizer sees who looks too long.
 */
#ifndef VIGIL_ENGINE_FAKE_HISTORY_H
#define VIGIL_ENGINE_FAKE_HISTORY_H

#include "engine/fake/model.h"
#include "watch/history.h"

struct fake_history;

struct fake_history *fake_history_new(struct fake_model *model); /* aborts without memory */
void fake_history_free(struct fake_history *history);            /* accepts NULL */
struct watch_history *fake_history_base(struct fake_history *history);
/* Takes back what was handed out. */
void fake_history_turn_end(struct fake_history *history);
bool fake_history_listens(const struct fake_history *history);

#endif
