package streamproof.flink;

import org.apache.flink.shaded.asm9.org.objectweb.asm.ClassReader;
import org.apache.flink.shaded.asm9.org.objectweb.asm.ClassVisitor;
import org.apache.flink.shaded.asm9.org.objectweb.asm.ClassWriter;
import org.apache.flink.shaded.asm9.org.objectweb.asm.MethodVisitor;
import org.apache.flink.shaded.asm9.org.objectweb.asm.Opcodes;
import org.apache.flink.shaded.asm9.org.objectweb.asm.Type;
import org.apache.flink.shaded.asm9.org.objectweb.asm.commons.GeneratorAdapter;
import org.apache.flink.shaded.asm9.org.objectweb.asm.commons.Method;

/**
 * Puts a recording method in the place of each hooked one.
 *
 * <p>The hooked method keeps its code under another name. The new one asks for a beginning, calls it, and records what it was
 * given and what it returned. If it throws, nothing is recorded. As nothing is inserted into the old code, no stack frame has
 * to be computed anew.
 */
final class Wrapping extends ClassVisitor {
    private static final String BEHIND = "$recorded";
    private static final Type RECORDER = Type.getType(Recorder.class);
    private static final Method BEGIN = Method.getMethod("long[] begin()");
    private static final Method END = Method.getMethod("void end(String, long[], Object, Object[], Object)");
    private static final int HIDDEN = Opcodes.ACC_PRIVATE | Opcodes.ACC_PUBLIC | Opcodes.ACC_PROTECTED;

    private final String owner;

    private Wrapping(String owner, ClassVisitor next) {
        super(Opcodes.ASM9, next);
        this.owner = owner;
    }

    /** The code of a class with its hooked methods wrapped. */
    static byte[] of(String owner, byte[] code) {
        ClassReader reader = new ClassReader(code);
        ClassWriter writer = new ClassWriter(reader, ClassWriter.COMPUTE_MAXS);
        reader.accept(new Wrapping(owner, writer), 0);
        return writer.toByteArray();
    }

    @Override
    public MethodVisitor visitMethod(int access, String name, String descriptor, String signature, String[] thrown) {
        boolean plain = (access & (Opcodes.ACC_STATIC | Opcodes.ACC_ABSTRACT | Opcodes.ACC_BRIDGE)) == 0;
        Hook hook = plain ? Hook.of(owner, name, Type.getArgumentTypes(descriptor).length) : null;
        if (hook == null) {
            return super.visitMethod(access, name, descriptor, signature, thrown);
        }
        int behind = (access & ~HIDDEN) | Opcodes.ACC_PRIVATE | Opcodes.ACC_FINAL;
        wrap(hook, access & ~Opcodes.ACC_SYNCHRONIZED, new Method(name, descriptor), signature, thrown);
        return super.visitMethod(behind, name + BEHIND, descriptor, signature, thrown);
    }

    private void wrap(Hook hook, int access, Method method, String signature, String[] thrown) {
        MethodVisitor visitor =
                super.visitMethod(access, method.getName(), method.getDescriptor(), signature, thrown);
        GeneratorAdapter to = new GeneratorAdapter(visitor, access, method.getName(), method.getDescriptor());
        to.visitCode();
        int begun = to.newLocal(Type.getType(long[].class));
        to.invokeStatic(RECORDER, BEGIN);
        to.storeLocal(begun);
        to.loadThis();
        to.loadArgs();
        to.visitMethodInsn(
                Opcodes.INVOKESPECIAL, owner, method.getName() + BEHIND, method.getDescriptor(), false);
        Type type = method.getReturnType();
        int result = to.newLocal(Type.getType(Object.class));
        if (type.getSort() == Type.VOID) {
            to.visitInsn(Opcodes.ACONST_NULL);
        } else {
            to.box(type);
        }
        to.storeLocal(result);
        to.push(hook.event);
        to.loadLocal(begun);
        to.loadThis();
        to.loadArgArray();
        to.loadLocal(result);
        to.invokeStatic(RECORDER, END);
        if (type.getSort() != Type.VOID) {
            to.loadLocal(result);
            to.unbox(type);
        }
        to.returnValue();
        to.endMethod();
    }
}
