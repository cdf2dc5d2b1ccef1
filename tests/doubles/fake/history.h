/*
 * The history of the fake engine: the versions of a model, in order of revision. It copies
 * everything it returns, and frees the copies when the turn ends, so that a sanitizer finds readers
 * that use them too long.
 */
#ifndef VIGIL_FAKE_HISTORY_H
#define VIGIL_FAKE_HISTORY_H

#include "fake/model.h"
#include "watch/index/history.h"

struct fake_history;

struct fake_history *fake_history_new(struct fake_model *model); /* aborts without memory */
void fake_history_free(struct fake_history *history);            /* accepts NULL */
struct watch_history *fake_history_base(struct fake_history *history);
/* Frees the copies of this turn. */
void fake_history_turn_end(struct fake_history *history);
bool fake_history_listens(const struct fake_history *history);

#endif
