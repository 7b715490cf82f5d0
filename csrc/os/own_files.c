/*
 * own_files.c - see own_files.h.
 */
#include "os/own_files.h"

#include "base/assert.h"

#include <sys/stat.h>

struct identity { /* zero: not noted */
    dev_t device;
    ino_t inode;
};

static struct identity noted[MQX_OWN_FILES_MAX];

static struct identity identity_of(int fd)
{
    MQX_ASSERT(fd >= 0);
    struct stat facts;
    return fstat(fd, &facts) == 0
               ? (struct identity){.device = facts.st_dev, .inode = facts.st_ino}
               : (struct identity){.inode = 0};
}

void mqx_own_files_note(int fd)
{
    MQX_ASSERT(fd >= 0);
    if (fd < MQX_OWN_FILES_MAX) {
        noted[fd] = identity_of(fd);
    }
}

bool mqx_own_files_take(int fd)
{
    MQX_ASSERT(fd >= 0);
    if (fd >= MQX_OWN_FILES_MAX || noted[fd].inode == 0) {
        return true;
    }
    const struct identity was = noted[fd], is = identity_of(fd);
    noted[fd] = (struct identity){.inode = 0};
    return was.device == is.device && was.inode == is.inode;
}
