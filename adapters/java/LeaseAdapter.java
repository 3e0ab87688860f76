import java.util.HashMap;
import java.util.List;
import java.util.Map;
import streamproof.Adapter;

/** A lease service, driven through the actions of examples/lease/lease.py; with `--unfenced` its storage ignores tokens. */
public final class LeaseAdapter extends Adapter {
    /** One lease at a time, and a storage that refuses tokens older than the newest that it has seen. */
    static final class Service {
        final boolean fenced;
        Long holder;
        long issued;
        long newest;
        long stored;

        Service(boolean fenced) {
            this.fenced = fenced;
        }

        /** The token of a new lease; 0 if another one is valid. */
        long acquire(long client) {
            if (holder != null) {
                return 0;
            }
            holder = client;
            return ++issued;
        }

        boolean expire() {
            boolean ended = holder != null;
            holder = null;
            return ended;
        }

        boolean write(long token) {
            if (fenced && token < newest) {
                return false;
            }
            stored = token;
            newest = Math.max(newest, token);
            return true;
        }
    }

    private final boolean fenced;
    private Service service;
    private Map<Long, Long> tokens;

    LeaseAdapter(boolean fenced) {
        this.fenced = fenced;
    }

    @Override
    protected Map<String, ?> reset(Map<String, Object> parameters, long seed) {
        service = new Service(fenced);
        tokens = new HashMap<>();
        return null;
    }

    @Override
    protected Object act(String action, Map<String, Object> args, Map<String, Object> picks) {
        Long client = (Long) args.get("client");
        switch (action) {
            case "grant":
                long token = service.acquire(client);
                if (token == 0) {
                    throw new Refused("another client has the lease");
                }
                tokens.put(client, token);
                return null;
            case "expire":
                if (!service.expire()) {
                    throw new Refused("there is no lease");
                }
                return null;
            case "write", "refuse":
                if (!args.get("token").equals(tokens.get(client))) {
                    throw new Unsupported("a client has no other token than its own");
                }
                return new Happened(service.write((Long) args.get("token")) ? "write" : "refuse", args);
            default:
                throw new Unsupported(action);
        }
    }

    @Override
    protected Map<String, ?> observe(List<Object> of) {
        Map<String, Object> state = new HashMap<>();
        state.put("holder", service.holder);
        state.put("issued", service.issued);
        state.put("stored", service.stored);
        state.put("newest", service.newest);
        return state;
    }

    public static void main(String[] args) throws Exception {
        new LeaseAdapter(args.length == 0).serve();
    }
}
