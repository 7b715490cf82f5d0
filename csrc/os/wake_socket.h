/*
 * wake_socket.h - telling another process's event loop that something happened, by its descriptor.
 *
 * An event loop sleeps on descriptors, not on words of memory. So a process that waits in one binds
 * a datagram socket to a name in a directory that the others know, and who wakes it sends an empty
 * datagram there: one system call, no descriptor for each receiver, no SIGPIPE, and nothing that
 * blocks. A datagram is a hint, and has no content: one that is lost because the receiver has many
 * already is no loss.
 *
 * Why not a FIFO: who writes into one keeps a descriptor for each reader. A program that closes
 * descriptors it did not open gives such a number to a file of its own, and the next wake-up is
 * written into that file. An empty datagram with an address changes nothing, whatever the
 * descriptor has become: a file refuses it, a stream sends no byte.
 *
 * Terms
 *   sender   the socket from which this process sends: one, unbound, made when first needed; a
 *            forked child makes its own.
 *
 * Names: a path of at most MQX_WAKE_PATH - 1 bytes. Only the owner of the files, or the members of
 * their group, may send to it. The binding process removes the name.
 *
 * Locks: none of the region; none at all for sending, but while the sender is made.
 */
#ifndef PENSTOCK_WAKE_SOCKET_H
#define PENSTOCK_WAKE_SOCKET_H

#include "os/file_id.h"

enum { MQX_WAKE_PATH = 108 }; /* sun_path */

/* Binds a socket to `path` and keeps it from forked children. -> fd; *id: to be compared with
 * before it is used. A negated errno: -EADDRINUSE when the name exists. */
int mqx_wake_socket_bind(struct mqx_io *io, const char *path,
                         struct mqx_file_id *id) MQX_MUST_USE;
/* Closes it, unless it is another file now; the name stays. */
void mqx_wake_socket_close(int fd, const struct mqx_file_id *id);

/* Sends to that path. Nobody there, or one that has enough: nothing happens. */
void mqx_wake_socket_ring(const char *path);
/* Takes one datagram, if there is one. A descriptor that is another file now is left alone. */
void mqx_wake_socket_answer(int fd, const struct mqx_file_id *id);

#endif
