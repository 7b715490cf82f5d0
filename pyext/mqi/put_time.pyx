# put_time.pyx - PutDate and PutTime of an MQMD, to and from microseconds since 1970.
#
# The engine keeps the time of a put as a number. A PutDate and PutTime that an application sets
# (SET_ALL context) and that are no date and time are kept as 0, unknown: they read as blanks.
#
# Locks. With the GIL: the date written last is kept, since most messages of a while have the same.

cdef int64_t shown_day = -1   # days since 1970 whose date stands in shown_date
cdef char shown_date[MQ_PUT_DATE_LENGTH]


cdef inline void two_digits(char *text, int64_t number) noexcept:
    text[0] = <char>(c'0' + number // 10 % 10)
    text[1] = <char>(c'0' + number % 10)


cdef void write_date(char *text, int64_t day) noexcept:
    """YYYYMMDD of a day, by the 400-year cycle of the calendar that begins with March."""
    global shown_day
    cdef int64_t era, of_era, year, of_year, month
    if day != shown_day:
        era = (day + EPOCH_DAY) // CYCLE_DAYS
        of_era = day + EPOCH_DAY - era * CYCLE_DAYS
        year = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
        of_year = of_era - (365 * year + year // 4 - year // 100)
        month = (5 * of_year + 2) // 153
        year += era * 400 + (1 if month > 9 else 0)
        two_digits(shown_date, year // 100)
        two_digits(shown_date + 2, year % 100)
        two_digits(shown_date + 4, month + 3 if month < 10 else month - 9)
        two_digits(shown_date + 6, of_year - (153 * month + 2) // 5 + 1)
        shown_day = day
    memcpy(text, shown_date, MQ_PUT_DATE_LENGTH)


cdef void write_put_time(char *text, uint64_t time_us) noexcept:
    """PutDate and PutTime, 16 characters; blanks when the time is not known."""
    cdef uint64_t known = known_time(time_us)
    cdef int64_t day = <int64_t>(known // DAY_US)
    cdef int64_t hundredths = <int64_t>(known % DAY_US) // HUNDREDTH_US
    if time_us == 0:
        memset(text, BLANK, MQ_PUT_DATE_LENGTH + MQ_PUT_TIME_LENGTH)
        return
    write_date(text, day)
    two_digits(text + 8, hundredths // 360000)
    two_digits(text + 10, hundredths // 6000 % 60)
    two_digits(text + 12, hundredths // 100 % 60)
    two_digits(text + 14, hundredths % 100)


cdef int64_t take_digits(const char *text, int count) noexcept:
    """A number of so many digits, -1 when it is none."""
    cdef int64_t number = 0
    cdef int i
    for i in range(count):
        if not c'0' <= text[i] <= c'9':
            return -1
        number = number * 10 + text[i] - c'0'
    return number


cdef uint64_t take_put_time(const char *text) noexcept:
    """Microseconds of PutDate and PutTime (16 characters), 0 when they are no time after 1970."""
    cdef int64_t year = take_digits(text, 4), month = take_digits(text + 4, 2)
    cdef int64_t day = take_digits(text + 6, 2), hour = take_digits(text + 8, 2)
    cdef int64_t minute = take_digits(text + 10, 2), second = take_digits(text + 12, 2)
    cdef int64_t hundredth = take_digits(text + 14, 2), days
    if (
        year < 1970 or not 1 <= month <= 12 or not 1 <= day <= 31 or not 0 <= hour <= 23
        or not 0 <= minute <= 59 or not 0 <= second <= 59 or hundredth < 0
    ):
        return 0
    if month <= 2:
        year -= 1
    days = year // 400 * CYCLE_DAYS + (year % 400) * 365 + (year % 400) // 4 - (year % 400) // 100
    days += (153 * ((month + 9) % 12) + 2) // 5 + day - 1 - EPOCH_DAY
    return <uint64_t>(
        days * DAY_US + ((hour * 60 + minute) * 60 + second) * SECOND_US + hundredth * HUNDREDTH_US
    )
