/*
 * When the disk cannot read a mapped page of the log, the process gets SIGBUS in the middle of a
 * read and cannot continue. The handler reports where the damage is, and the process ends.
 */
#ifndef VIGIL_ENGINE_LOCAL_PAGE_FAULT_H
#define VIGIL_ENGINE_LOCAL_PAGE_FAULT_H

#include "store/log/log.h"

/* From now on such a fault in this log is reported on standard error before the process ends. */
void page_fault_watch(const struct log *log);
void page_fault_unwatch(void);

/*
 * While a data directory is opened: LMDB has no checksums and may crash on damaged pages. Such a
 * crash is reported as a failed start.
 */
void page_fault_guard(const char *data_dir); /* borrowed until unguard */
void page_fault_unguard(void);

#endif
