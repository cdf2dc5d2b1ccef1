/*
 * Files of a data directory are mapped. When the disk cannot read a page of one, or the file was
 * shortened, the process gets SIGBUS in the middle of an access and cannot continue. The handler
 * writes one line that names the file, the offset and what to do, and ends the process.
 */
#ifndef VIGIL_ENGINE_LOCAL_PAGE_FAULT_H
#define VIGIL_ENGINE_LOCAL_PAGE_FAULT_H

#include <stdbool.h>

enum { PAGE_FAULT_EXIT = 74 }; /* EX_IOERR of sysexits.h */

/*
 * Until the process ends. The line is one of the server's log, or a sentence if a program is named,
 * as in "vigil repair". What can be read of a store can be copied; a mirror is loaded again.
 */
void page_fault_report(const char *program, const char *data_dir, bool is_mirror);

/*
 * While a data directory is opened: LMDB has no checksums and may crash on damaged pages. Such a
 * crash is reported as a failed start of the directory that page_fault_report has named.
 */
void page_fault_guard(void);
void page_fault_unguard(void);

#endif
