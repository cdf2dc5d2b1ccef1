/* A watch that another object of the library uses. Everything happens on the loop's thread. */
#ifndef VIGIL_CLIENT_WATCH_WATCH_OBSERVER_H
#define VIGIL_CLIENT_WATCH_WATCH_OBSERVER_H

#include <vigil/watch.h>

/* The user pointer is the one that the watch was made with. */
struct watch_observer {
    vigil_watch_fn fn; /* called outside of callbacks of the program */
    /* The number of bytes that are held because of a pause has changed. */
    void (*held)(void *user, size_t bytes);
};

/* vigil_watch_new with an observer, which must live as long as the watch. */
int watch_new_observed(vigil_client *client, const vigil_watch_options *options,
                       const struct watch_observer *observer, void *user, vigil_watch **ret_watch);

#endif
