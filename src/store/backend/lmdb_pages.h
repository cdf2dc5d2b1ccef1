/*
 * Whether the file of an LMDB environment can be followed: LMDB believes every number in its pages,
 * so that one which a disk has changed sends it anywhere. Read before LMDB opens the file: every
 * page that the newest state reaches is a page of its kind, holds what it says within its bounds,
 * and belongs to one tree alone; none of them is listed as free, so that none is written over.
 *
 * What the entries say is not looked at here: see backend_verify.
 */
#ifndef VIGIL_STORE_BACKEND_LMDB_PAGES_H
#define VIGIL_STORE_BACKEND_LMDB_PAGES_H

#include "base/status.h"

#include <stdint.h>

/* ST_NOT_FOUND: there is no file, or no environment in it. *ret_page is the page of which
 * ST_DAMAGED is said. */
MUST_CHECK
enum status lmdb_pages_check(const char *dir, uint64_t *ret_page);

#endif
