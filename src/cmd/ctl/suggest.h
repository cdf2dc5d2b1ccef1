/* The commands that a mistyped word may have meant, as etcdctl suggests them. */
#ifndef VIGIL_CMD_CTL_SUGGEST_H
#define VIGIL_CMD_CTL_SUGGEST_H

#include "cmd/ctl/ctl.h"

enum { CTL_SUGGESTIONS_MAX = 32 };

/* Whether two changes of a letter make the name of the word, or the name begins with it. Case does
 * not matter. */
bool ctl_resembles(const char *word, struct slice name);

/* The names that resemble the word, at most CTL_SUGGESTIONS_MAX; returns how many. "lease", not
 * "lease grant". */
size_t ctl_suggest(const char *word, enum ctl_style style, struct slice *ret_names);

#endif
