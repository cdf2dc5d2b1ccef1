/*
 * A mapped page of the log that the disk could not give: the process is told by SIGBUS, in the
 * middle of a read. There is no way on. What can be done is to say where the damage is, and stop.
 */
#ifndef VIGIL_ENGINE_LOCAL_PAGE_FAULT_H
#define VIGIL_ENGINE_LOCAL_PAGE_FAULT_H

#include "store/log/log.h"

/* From now on such a fault in this log is named on standard error before the process dies of it. */
void page_fault_watch(const struct log *log);
void page_fault_unwatch(void);

/*
 * While a data directory is opened: LMDB has no checksums, and follows pages that are damaged
 * wherever they lead. What that ends in is told as a refusal to start.
 */
void page_fault_guard(const char *data_dir); /* borrowed until the end */
void page_fault_unguard(void);

#endif
