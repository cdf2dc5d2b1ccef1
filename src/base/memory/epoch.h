/*
 * Frees memory that readers on other threads may still use.
 *
 * One writer publishes numbered states; readers pin a number while they read that state. Objects
 * that a state replaced are retired with the new state's number and freed when no reader pins an
 * older one. Each reader thread has a slot that shows the oldest number it still needs.
 *
 * epoch_pin loads the published number, shows it in the slot, and loads again, so that the writer
 * cannot have missed it. A reader with several states in use (a long list beside quick gets) shows
 * the oldest: struct epoch_slot counts its pins by number.
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
void epoch_free(struct epoch *epoch);        /* frees everything that is retired */
DEFINE_CLEANUP(struct epoch *, epoch_free)

/* At most slots_max; on any thread. The writer looks at every slot that was added each time it
 * frees something. */
struct epoch_slot *epoch_slot_add(struct epoch *epoch);

/* Reader. Returns the number pinned: the newest published. Pins nest and may end in any order. */
uint64_t epoch_pin(struct epoch_slot *slot);
void epoch_unpin(struct epoch_slot *slot, uint64_t number);

/*
 * Writer. States are built one after the other and numbered in order. An object that is retired
 * while state n is being built was last visible in n - 1.
 *
 *   building n ── epoch_seal ──► sealed: complete, not yet readable ── publish ──► readers pin n
 *
 * A writer that must wait before others may see a state seals it, continues to build, and publishes
 * its number later; states may be published together. The caller makes what readers start from (a
 * root) reachable before it publishes the number.
 */
uint64_t epoch_next(const struct epoch *epoch);                  /* the number being built */
uint64_t epoch_seal(struct epoch *epoch);                        /* returns the number sealed */
void epoch_publish_number(struct epoch *epoch, uint64_t number); /* sealed; never moves back */
void epoch_publish(struct epoch *epoch); /* seals the state and publishes it */

/* free_fn is called by the writer once no reader can see the object. */
void epoch_retire(struct epoch *epoch, void *object, void (*free_fn)(void *ctx, void *object),
                  void *ctx);
/* Frees objects that no reader can see, at most max per call. Returns how many still wait. */
size_t epoch_reclaim(struct epoch *epoch, size_t max);
/* Objects that were retired and are not freed yet. */
size_t epoch_waiting(const struct epoch *epoch);
/* The oldest number any reader pins; the published one when none does. */
uint64_t epoch_oldest(const struct epoch *epoch);

#endif
