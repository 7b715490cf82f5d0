# arrow.pxd - the Arrow C data interface, columns that are being filled, and the fields of
# ArrowTable.

cdef extern from *:
    """
    #ifndef ARROW_C_DATA_INTERFACE
    #define ARROW_C_DATA_INTERFACE
    struct ArrowSchema {
        const char *format;
        const char *name;
        const char *metadata;
        int64_t flags;
        int64_t n_children;
        struct ArrowSchema **children;
        struct ArrowSchema *dictionary;
        void (*release)(struct ArrowSchema *);
        void *private_data;
    };
    struct ArrowArray {
        int64_t length;
        int64_t null_count;
        int64_t offset;
        int64_t n_buffers;
        int64_t n_children;
        const void **buffers;
        struct ArrowArray **children;
        struct ArrowArray *dictionary;
        void (*release)(struct ArrowArray *);
        void *private_data;
    };
    #endif
    """
    struct ArrowSchema:
        const char *format
        const char *name
        const char *metadata
        int64_t flags
        int64_t n_children
        ArrowSchema **children
        ArrowSchema *dictionary
        void (*release)(ArrowSchema *) noexcept nogil
        void *private_data

    struct ArrowArray:
        int64_t length
        int64_t null_count
        int64_t offset
        int64_t n_buffers
        int64_t n_children
        const void **buffers
        ArrowArray **children
        ArrowArray *dictionary
        void (*release)(ArrowArray *) noexcept nogil
        void *private_data

cdef extern from "Python.h":
    void *PyMem_RawMalloc(size_t size) nogil
    void *PyMem_RawCalloc(size_t count, size_t size) nogil
    void *PyMem_RawRealloc(void *memory, size_t size) nogil
    void PyMem_RawFree(void *memory) nogil
    int Py_IsInitialized() nogil
    void Py_INCREF(object item)

cdef struct array_memory:     # private data of an exported array
    const void *buffers[3]
    void *own[3]              # those of them that are freed with it
    PyObject *owner           # what keeps the others; NULL: none


cdef struct given_memory:     # what columns are carved from, one after the other
    char *next
    PyObject *keeper          # borrowed


cdef struct gathering:        # a column that is being filled
    ArrowArray *child
    Py_ssize_t offset         # of its field in a row
    Py_ssize_t size
    int kind
    char *values              # fixed: the values; text: the characters
    char *bits                # bool: the values; UNLESS, SECONDS: which are not null
    int32_t *ends             # text, BYTES: the offsets


@cython.final
cdef class ArrowTable:
    cdef object capsule       # None: finished
    cdef ArrowArray *array

    # columns being filled
    cdef gathering *all
    cdef Py_ssize_t count     # of columns
    cdef int64_t length       # rows so far
