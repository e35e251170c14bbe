"""Who is in a group, and what each member has to do: state machines that take commands and time.

They know no sockets, no requests and no logs. Replies go to callbacks that come with the commands, records to write
go out through one function, and time comes from a clock and a scheduler that are passed in.
"""
