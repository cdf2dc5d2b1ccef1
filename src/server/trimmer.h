/*
 * Decides what the C library keeps of freed memory. While clients hold little, it keeps what it
 * likes, because that is fastest for the next request. This is not bounded: what many large
 * requests have taken would stay with the process, in pieces of which the next requests use only
 * some. So, by what the budget of the clients says:
 *
 *     more than a quarter is held ──► large blocks are mappings of their own, which are returned
 *                                     when they are freed
 *     much less is held than before ──► a second later the rest is returned (malloc_trim), at most
 *                                       every ten seconds; if little is held, the first rule ends
 *
 * malloc_trim holds the lock of each thread's heap in turn, so it has a thread of its own. Only for
 * the process of a server: a program that contains a store decides itself.
 */
#ifndef VIGIL_SERVER_TRIMMER_H
#define VIGIL_SERVER_TRIMMER_H

#include "base/macros.h"
#include "base/status.h"

struct budget;
struct trimmer;

/* Starts the thread. The budget is borrowed until trimmer_free, and has no account yet. */
MUST_CHECK
enum status trimmer_start(struct budget *budget, struct trimmer **ret_trimmer);
/* After all accounts are freed. Accepts NULL. */
void trimmer_free(struct trimmer *trimmer);

#endif
