"""The five published systems, one module or folder each: its formulas, and the stages that no other system has.

The systems are ``rag_v1``, ``elizaos``, ``memorystack``, ``gimli`` and ``oltramem``. Each is a preset
(``conf/system``) of one pipeline, so most of its stages are general ones with its settings. The systems import the
rooms of the stages (``write``, ``query``, ``search``, ``rank``, ``read``, ``judge``), never the other way round, and
no other system. How the write-ups are read where they leave something open: docs/systems.md.
"""
