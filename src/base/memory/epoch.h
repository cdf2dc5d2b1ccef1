/*
 * Reclaiming memory that readers on other threads may still look at.
 *
 * One writer publishes numbered states; readers pin a number while they read that state. What a
 * state replaced is retired with the new state's number and freed when no reader pins an
 * older one. Each reader thread has a slot in which it shows the oldest number it still needs.
 *
 * epoch_pin is the reader's: it loads the published number, shows it, and loads again, so that
 * the writer can never have missed it. A reader with several states in use (a long list beside
 * quick gets) shows the oldest: struct epoch_slot counts its pins by number.
 */
#ifndef VIGIL_BASE_MEMORY_EPOCH_H
#define VIGIL_BASE_MEMORY_EPOCH_H

#include "base/macros.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct epoch;
struct epoch_slot; /* one per reader thread */

struct epoch *epoch_new(unsigned slots_max); /* aborts without memory */
void epoch_free(struct epoch *epoch);        /* frees all that is retired */
DEFINE_CLEANUP(struct epoch *, epoch_free)

/* At start-up, by the thread that will read. At most slots_max. */
struct epoch_slot *epoch_slot_add(struct epoch *epoch);

/* Reader. Returns the number pinned: the newest published. Pins nest and may end in any order. */
uint64_t epoch_pin(struct epoch_slot *slot);
void epoch_unpin(struct epoch_slot *slot, uint64_t number);

/*
 * Writer. States are built one after the other and numbered in order. What is retired while state
 * n is being built was last visible in n - 1.
 *
 *   building n ── epoch_seal ──► sealed: complete, nobody reads it yet ── publish ──► readers pin n
 *
 * A writer that must wait before others may see a state seals it, builds on, and publishes its
 * number later; states may be published together. The caller makes what readers start from (a
 * root) reachable before it publishes the number.
 */
uint64_t epoch_next(const struct epoch *epoch);                  /* the number being built */
uint64_t epoch_seal(struct epoch *epoch);                        /* returns the number sealed */
void epoch_publish_number(struct epoch *epoch, uint64_t number); /* sealed; never moves back */
void epoch_publish(struct epoch *epoch);                         /* seals, and publishes that */

/* free_fn is called by the writer once no reader can see the object. */
void epoch_retire(struct epoch *epoch, void *object, void (*free_fn)(void *ctx, void *object),
                  void *ctx);
/* Frees what nobody can see; at most max objects a call. Returns how many are still waiting. */
size_t epoch_reclaim(struct epoch *epoch, size_t max);
/* Objects that were retired and are not freed yet. */
size_t epoch_waiting(const struct epoch *epoch);
/* The oldest number any reader pins; the published one when none does. */
uint64_t epoch_oldest(const struct epoch *epoch);

#endif
