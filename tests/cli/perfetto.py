"""Perfetto's messages, as far as our traces use them: names and numbers of fields as in its own
trace_packet.proto and what that includes. Read by Google's library, which knows nothing of ours."""

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_MESSAGES = {
    "Trace": {"packet": (1, "TracePacket*")},
    "TracePacket": {
        "clock_snapshot": (6, "ClockSnapshot"), "timestamp": (8, "uint64"),
        "trusted_packet_sequence_id": (10, "uint32"), "track_event": (11, "TrackEvent"),
        "interned_data": (12, "InternedData"), "sequence_flags": (13, "uint32"),
        "trace_packet_defaults": (59, "TracePacketDefaults"),
        "track_descriptor": (60, "TrackDescriptor")},
    "ClockSnapshot": {"clocks": (1, "Clock*")},
    "Clock": {"clock_id": (1, "uint32"), "timestamp": (2, "uint64"),
              "unit_multiplier_ns": (4, "uint64")},
    "TracePacketDefaults": {"timestamp_clock_id": (58, "uint32")},
    "TrackDescriptor": {"uuid": (1, "uint64"), "name": (2, "string"),
                        "process": (3, "ProcessDescriptor"), "thread": (4, "ThreadDescriptor"),
                        "parent_uuid": (5, "uint64")},
    "ProcessDescriptor": {"pid": (1, "int32"), "process_name": (6, "string")},
    "ThreadDescriptor": {"pid": (1, "int32"), "tid": (2, "int32"), "thread_name": (5, "string")},
    "InternedData": {"event_names": (2, "EventName*")},
    "EventName": {"iid": (1, "uint64"), "name": (2, "string")},
    "TrackEvent": {"debug_annotations": (4, "DebugAnnotation*"), "type": (9, "int32"),
                   "name_iid": (10, "uint64"), "track_uuid": (11, "uint64"),
                   "categories": (22, "string*")},
    "DebugAnnotation": {"string_value": (6, "string"), "name": (10, "string")},
}
SLICE_BEGIN, SLICE_END = 1, 2


def _classes():
    file = descriptor_pb2.FileDescriptorProto(name="part.proto", package="p", syntax="proto2")
    kinds = descriptor_pb2.FieldDescriptorProto
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, (number, kind) in fields.items():
            one = message.field.add(name=field, number=number)
            one.label = kinds.LABEL_REPEATED if kind.endswith("*") else kinds.LABEL_OPTIONAL
            kind = kind.rstrip("*")
            if kind in _MESSAGES:
                one.type, one.type_name = kinds.TYPE_MESSAGE, ".p." + kind
            else:
                one.type = getattr(kinds, "TYPE_" + kind.upper())
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.MessageFactory(pool).GetPrototype(pool.FindMessageTypeByName("p.Trace"))


Trace = _classes()


def slices(trace):
    """(name, begin, end) of each call as a viewer pairs them, and the tracks."""
    names, stacks, found, tracks = {}, {}, [], []
    for packet in trace.packet:
        for name in packet.interned_data.event_names:
            assert names.setdefault(name.iid, name.name) == name.name
        if packet.HasField("track_descriptor"):
            tracks.append(packet.track_descriptor)
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        stack = stacks.setdefault(event.track_uuid, [])
        if event.type == SLICE_BEGIN:
            stack.append((names[event.name_iid], packet.timestamp))
        elif event.type == SLICE_END:
            name, begin = stack.pop()
            found.append((name, begin, packet.timestamp))
    assert not any(stacks.values()), "a call without an end"
    return found, tracks
